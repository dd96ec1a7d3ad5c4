# SPDX-License-Identifier: Apache-2.0
"""One run: options, scenario, seeds, key and simulation."""
