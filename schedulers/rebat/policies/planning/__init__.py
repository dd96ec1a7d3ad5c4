# SPDX-License-Identifier: Apache-2.0
"""When which queued attempt starts."""
