# SPDX-License-Identifier: Apache-2.0
"""Functions on arrays, compiled by numba. They use no objects, random numbers or I/O.

The tests contain a simple, slow reference implementation of each function. With
``NUMBA_DISABLE_JIT=1`` the functions run as plain Python.
"""
