# SPDX-License-Identifier: Apache-2.0
"""Array functions compiled by numba: no objects, no random numbers, no I/O.

Each function has a plain, slow reference in the tests. With ``NUMBA_DISABLE_JIT=1`` the functions
run as plain Python.
"""
