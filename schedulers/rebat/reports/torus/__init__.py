"""Vardas, Ploumidis, Marazakis 2022: claims, tables, figures and printed values."""
