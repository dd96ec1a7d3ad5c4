# SPDX-License-Identifier: Apache-2.0
"""Platforms: named machines, and a reader and writer of their SimGrid XML files."""
