# SPDX-License-Identifier: Apache-2.0
"""Connection of a session to Batsim: encoding of messages, sockets, recordings, conversations."""
