# SPDX-License-Identifier: Apache-2.0
"""Node failures: the laws that draw them (`laws`) and the files that contain them (`events`)."""
