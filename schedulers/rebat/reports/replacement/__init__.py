"""Dynamic node replacement: the evaluation of Prabhakaran et al. 2018 again, and on Mira."""
