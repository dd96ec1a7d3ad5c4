# SPDX-License-Identifier: Apache-2.0
"""Everything between bytes and a session: the codec, the links, recordings, the conversation."""
