# SPDX-License-Identifier: Apache-2.0
"""Reports of published evaluations: a folder per paper, and ``common`` for shared code."""
