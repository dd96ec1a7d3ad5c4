# SPDX-License-Identifier: Apache-2.0
"""Connection of a session to Batsim: codec, links, recordings and conversation."""
