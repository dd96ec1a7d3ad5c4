# SPDX-License-Identifier: Apache-2.0
"""The style of all HTML pages."""

from __future__ import annotations

PAGE_STYLE = """body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto;
  padding: 0 1rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
.wide, .figure { overflow-x: auto; background:
  linear-gradient(90deg, Canvas 30%, transparent) local 0 0 / 3rem 100% no-repeat,
  linear-gradient(270deg, Canvas 30%, transparent) local 100% 0 / 3rem 100% no-repeat,
  linear-gradient(90deg, #8888, transparent) 0 0 / 1rem 100% no-repeat,
  linear-gradient(270deg, #8888, transparent) 100% 0 / 1rem 100% no-repeat }"""
"""Style of body and tables. A shadow at the side of a table or figure shows that it can scroll."""
