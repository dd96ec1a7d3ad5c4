# SPDX-License-Identifier: Apache-2.0
from rebat.cli.main import main

main()
