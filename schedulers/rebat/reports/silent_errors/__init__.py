"""Benoit, Le Fèvre, Raghavan, Robert, Sun 2020: claims, tables, figures and printed values."""
