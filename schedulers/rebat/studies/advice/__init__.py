# SPDX-License-Identifier: Apache-2.0
"""``rebat advise``: simulations that answer five questions of an operator."""
