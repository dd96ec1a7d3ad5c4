# SPDX-License-Identifier: Apache-2.0
"""Dynamic node replacement: the evaluation of Prabhakaran et al. 2018.

The same evaluation on the machine Mira is included.
"""
