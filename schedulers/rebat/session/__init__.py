# SPDX-License-Identifier: Apache-2.0
"""State machine of the scheduler, without sockets or files; policies plug in."""
