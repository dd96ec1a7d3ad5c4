# SPDX-License-Identifier: Apache-2.0
"""rebat's schedulers as plug-ins for other frameworks."""
