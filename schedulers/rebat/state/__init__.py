# SPDX-License-Identifier: Apache-2.0
"""The compiled loop: engine, session and list scheduling in one function over arrays.

`eligible` states which runs it covers. The engine and the session are the reference for all runs.
"""
