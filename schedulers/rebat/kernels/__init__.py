# SPDX-License-Identifier: Apache-2.0
"""Array functions compiled by numba: no objects, no random numbers, no I/O.

Each has a plain, slow oracle in the tests and runs as plain Python with ``NUMBA_DISABLE_JIT=1``.
"""
