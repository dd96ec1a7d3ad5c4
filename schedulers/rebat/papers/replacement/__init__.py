# SPDX-License-Identifier: Apache-2.0
"""Dynamic node replacement: the evaluation of Prabhakaran et al. 2018, also on Mira."""
