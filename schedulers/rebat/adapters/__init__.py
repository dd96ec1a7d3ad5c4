# SPDX-License-Identifier: Apache-2.0
"""Plug-ins with rebat's schedulers for other frameworks."""
