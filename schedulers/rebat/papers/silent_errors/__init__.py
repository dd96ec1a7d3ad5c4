# SPDX-License-Identifier: Apache-2.0
"""Benoit, Le Fèvre, Raghavan, Robert, Sun 2020: claims, tables, figures and published values."""
