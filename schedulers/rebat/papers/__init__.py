# SPDX-License-Identifier: Apache-2.0
"""Reports of published evaluations: a folder for each paper, and ``common`` for shared code."""
