# SPDX-License-Identifier: Apache-2.0
"""Contract tests of a policy: random cases, the rules to keep, and the smallest failing case."""
