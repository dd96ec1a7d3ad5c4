#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Generate the workloads, failure events and platforms of the repository again, byte for byte.
set -euo pipefail
cd "$(dirname "$0")/.."
rebat=.venv/bin/rebat
$rebat workload generate june-2017 --force -o workloads/mira-like-june-2017.json.gz
for spec in mira intrepid torus:8,8,8,8 flat:4; do
    name=${spec/:/-}
    name=${name//,/x}
    $rebat platform generate "$spec" --force -o "platforms/$name.xml"
    $rebat platform generate "$spec" --zero-latency --force -o "platforms/$name-zero-latency.xml"
done
$rebat platform generate flat:128 --zero-latency --force -o platforms/flat-128-zero-latency.xml
