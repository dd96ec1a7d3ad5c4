# SPDX-License-Identifier: Apache-2.0
"""Du, Marchal, Pallez, Robert 2024: claims, tables, figures and published values."""
