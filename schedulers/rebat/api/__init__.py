# SPDX-License-Identifier: Apache-2.0
"""Public functions of ``import rebat``. The command line calls the same functions."""
