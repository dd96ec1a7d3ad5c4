# SPDX-License-Identifier: Apache-2.0
"""Contract tests of a policy: random cases, rules, and the smallest case that fails."""
