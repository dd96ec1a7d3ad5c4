# SPDX-License-Identifier: Apache-2.0
"""State machine of the scheduler, without sockets and files; it calls a policy."""
