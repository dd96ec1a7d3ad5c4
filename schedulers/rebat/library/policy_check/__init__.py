# SPDX-License-Identifier: Apache-2.0
"""Contract tests of a policy: random cases, what must hold in them, and the smallest failure."""
