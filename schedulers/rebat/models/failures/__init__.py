# SPDX-License-Identifier: Apache-2.0
"""Failures of nodes: the laws that draw them (`laws`), the files that hold them (`events`)."""
