# SPDX-License-Identifier: Apache-2.0
"""An interactive page of runs without network, with Bokeh axes and drawing in the browser."""
