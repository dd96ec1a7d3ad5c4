#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build wheel and sdist, install each into a new environment outside the repository, and run the first
# commands of a user. Usage: scripts/check-install.sh [PYTHON ...], default: python3.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/build"
"$work/build/bin/pip" install --quiet build
"$work/build/bin/python" -m build --outdir "$work/dist" . > "$work/build.log" 2>&1 ||
    { cat "$work/build.log"; exit 1; }
ls -l "$work/dist"

for python in "${@:-python3}"; do
    for package in "$work"/dist/*.whl "$work"/dist/*.tar.gz; do
        env="$work/env"
        rm -rf "$env" "$work/out"
        "$python" -m venv "$env"
        "$env/bin/pip" install --quiet "$package"
        (
            cd "$work"
            "$env/bin/rebat" --version
            "$env/bin/rebat" toy > toy.txt
            "$env/bin/rebat" run mira-like-june-2017 -p easy --out "$work/out/month" > month.txt
            "$env/bin/rebat" compare --batsched synthetic-small > batsched.txt
            "$env/bin/rebat" platform describe mira > platform.txt
            "$env/bin/python" -c 'import rebat; print(rebat.load_workload("toy"))'
        )
        echo "$("$python" --version), $(basename "$package"): works," \
            "$(du -sm "$env" | cut -f1) MB installed"
    done
done
