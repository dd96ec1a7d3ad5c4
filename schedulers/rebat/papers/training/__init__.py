# SPDX-License-Identifier: Apache-2.0
"""Training clusters: effective training time over spare nodes and checkpoint intervals."""
