# SPDX-License-Identifier: Apache-2.0
"""rebat's schedulers inside other people's frameworks."""
