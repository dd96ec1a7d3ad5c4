# SPDX-License-Identifier: Apache-2.0
"""Node failures: laws that draw failures at random (`laws`), and files of failures (`events`)."""
