# SPDX-License-Identifier: Apache-2.0
"""What everything else speaks in: times, jobs, node sets, events, decisions, errors."""
