# SPDX-License-Identifier: Apache-2.0
"""Node failures: laws that draw failures (`laws`), and files that contain failures (`events`)."""
