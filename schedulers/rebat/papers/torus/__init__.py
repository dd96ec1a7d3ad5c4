# SPDX-License-Identifier: Apache-2.0
"""Vardas, Ploumidis, Marazakis 2022: claims, tables, figures and published values."""
