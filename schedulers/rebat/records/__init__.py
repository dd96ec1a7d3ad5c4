# SPDX-License-Identifier: Apache-2.0
"""The door for foreign data: one reader, and a mapping for each format of jobs and failures."""
