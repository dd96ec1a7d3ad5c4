# SPDX-License-Identifier: Apache-2.0
"""What to do when nodes fail under running jobs."""
