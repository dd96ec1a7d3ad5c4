# SPDX-License-Identifier: Apache-2.0
"""``rebat advise``: five questions of an operator, answered by a designed set of simulations."""
