# SPDX-License-Identifier: Apache-2.0
"""``rebat advise``: answers to five questions of an operator, from a set of simulations."""
