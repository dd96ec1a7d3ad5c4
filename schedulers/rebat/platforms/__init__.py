# SPDX-License-Identifier: Apache-2.0
"""Platforms: named machines, and reading and writing of their SimGrid XML files."""
