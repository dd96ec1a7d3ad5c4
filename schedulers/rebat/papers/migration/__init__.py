# SPDX-License-Identifier: Apache-2.0
"""Job migration: the evaluation of Rodríguez-Pascual et al. 2019, repeated and extended."""
