# SPDX-License-Identifier: Apache-2.0
"""An interactive page of runs that needs no network. It uses Bokeh and draws in the browser."""
