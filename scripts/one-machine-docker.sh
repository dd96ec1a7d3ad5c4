#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Run docker-compose.yml on one Debian machine: a separate Docker engine, a base image, the campaign of
# two policies, and the same campaign on rebat's engine. The results must be equal. Needs root and
# apt-get, but no systemd and no image registry. All files are in one folder, and the engine has a
# separate network.
#
#   scripts/one-machine-docker.sh check   # up, run, down
#   scripts/one-machine-docker.sh up      # start the engine, make the base image, build rebat's
#   scripts/one-machine-docker.sh run     # all services of compose, validated and compared
#   scripts/one-machine-docker.sh down    # stop it and remove all its processes, networks and files
#
# `up` installs missing packages (apt-get install docker.io docker-compose debootstrap python3-venv);
# `down` does not remove them. The base image is Debian with Python, tagged with the name in the
# Dockerfile. Its pip uses only wheels that this machine's pip has built.
# DOCKER_DIR: the folder (default /tmp/one-machine-docker). REBAT_POLICY: the policy that is compared
# with Baseline (default sfsj). BATSIM_ARCHIVE, BATSCHED_ARCHIVE: images of Batsim and Batsched from
# `docker save`; BATSIM_IMAGE, BATSIM_TAG and BATSCHED_IMAGE are their names. Without an image of
# Batsim and Batsched `rebat simulate` and `rebat serve` replace them.
# If it cannot run, it prints the reason in one line and ends with exit status 2.
set -euo pipefail

source=$(cd "$(dirname "$0")/.." && pwd)
folder=${DOCKER_DIR:-/tmp/one-machine-docker}
policy=${REBAT_POLICY:-sfsj}
patience_s=30
export DOCKER_HOST=unix://$folder/docker.sock
export COMPOSE_PROJECT_NAME=one-machine-docker REBAT_POLICY=$policy

report() { echo "one-machine-docker: $*" >&2; }
refuse() { report "$*"; exit 2; }

main() {
    case ${1:-} in
        up | run | down | check) "$1" ;;
        *) refuse "expected check, up, run or down" ;;
    esac
}

check() {
    up
    trap down EXIT
    run
}

up() {
    [ "$(uname -s)" = Linux ] || refuse "needs Linux"
    [ "$(id -u)" = 0 ] || refuse "needs root: the engine creates namespaces and mounts"
    [ ! -e "$folder" ] || refuse "$folder exists: the engine runs, or an earlier one was not removed; run down first"
    unshare --net --mount true 2> /dev/null || refuse "the kernel does not allow namespaces"
    install_packages
    trap down EXIT
    install -d -m 700 "$folder" "$folder/log"
    touch "$folder/ours"
    start
    make_wheels &
    make_system
    wait $! || failed "pip could not build the wheels" wheels
    import_base
    copy_project
    report "building rebat's image ..."
    compose build --quiet > "$folder/log/build" 2>&1 || failed "the image was not built" build
    load_images
    trap - EXIT
    report "started, DOCKER_HOST=$DOCKER_HOST"
}

install_packages() {
    local pair missing=()
    for pair in dockerd:docker.io docker-compose:docker-compose debootstrap:debootstrap; do
        command -v "${pair%:*}" > /dev/null || missing+=("${pair#*:}")
    done
    /usr/bin/python3 -c 'import ensurepip' 2> /dev/null || missing+=(python3-venv)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get > /dev/null || refuse "${missing[*]} is missing, and there is no apt-get to install it"
    report "installing ${missing[*]} ..."
    { apt-get update && DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "${missing[@]}"; } > /tmp/apt.$$ 2>&1 || {
        tail -n 3 /tmp/apt.$$ >&2
        rm -f /tmp/apt.$$
        refuse "apt-get could not install ${missing[*]}"
    }
    rm -f /tmp/apt.$$
}

# Start the engine with Docker's defaults, or without features that the kernel may lack. Its bridges,
# rules and mounts are in namespaces, which end with it.
start() {
    local options
    for options in "" --storage-driver=vfs --iptables=false \
        "--iptables=false --storage-driver=vfs"; do
        # shellcheck disable=SC2016,SC2086  # the inner shell expands; word splitting is intended
        unshare --net --mount sh -c 'ip link set lo up 2> /dev/null; exec "$@"' sh \
            dockerd --host "$DOCKER_HOST" --data-root "$folder/data" --exec-root "$folder/exec" \
            --pidfile "$folder/dockerd.pid" $options > "$folder/log/dockerd" 2>&1 &
        wait_until_up $! && return 0
        report "dockerd $options: $(tail -n 1 "$folder/log/dockerd")"
        end_engine
    done
    refuse "dockerd does not start"
}

wait_until_up() {
    local until=$((SECONDS + patience_s))
    while ! docker version > /dev/null 2>&1; do
        { kill -0 "$1" 2> /dev/null && [ $SECONDS -lt $until ]; } || return 1
        sleep 0.2
    done
}

# Build wheels of all requirements of rebat with this machine's pip and its configuration.
make_wheels() {
    /usr/bin/python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" wheel --wheel-dir "$folder/wheels" pip hatchling hatch-vcs "$source" \
        > "$folder/log/wheels" 2>&1
    rm "$folder"/wheels/rebat-*.whl
}

# Install Debian with Python into memory, because a package manager syncs the disk after each file.
make_system() {
    local release mirror
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
    mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' \
        'Created-By: Packages' | awk -v s="$release" '$1 == s && $2 == "main" {print $3; exit}')
    [ -n "$mirror" ] || refuse "apt-get knows no archive of Debian $release"
    install -d "$folder/system"
    mount -t tmpfs tmpfs "$folder/system" || refuse "cannot mount a tmpfs"
    report "creating the base image ..."
    debootstrap --variant=minbase --include=python3 "$release" "$folder/system" "$mirror" \
        > "$folder/log/debootstrap" 2>&1 || failed "debootstrap failed" debootstrap
}

import_base() {
    local pip system=$folder/system
    cp -r "$folder/wheels" "$system/opt/wheels"
    printf '%s\n' '[global]' 'no-index = true' 'find-links = /opt/wheels' \
        'break-system-packages = true' 'root-user-action = ignore' > "$system/etc/pip.conf"
    pip=$(basename "$folder"/wheels/pip-*.whl)
    chroot "$system" python3 "/opt/wheels/$pip/pip" install --quiet pip
    tar --directory "$system" --create . |
        docker import - "$(awk '$1 == "FROM" {print $2}' "$source/Dockerfile")" > /dev/null
    umount "$system"
}

# Copy the sources, so that nothing is written into their folder.
copy_project() {
    install -d "$folder/project/results/batsim"
    cd "$source"
    cp -r Dockerfile docker-compose.yml .env .dockerignore .git_archival.txt pyproject.toml README.md LICENSE \
        schedulers workloads failure_events platforms campaigns scripts "$folder/project"
}

load_images() {
    local archive
    for archive in ${BATSIM_ARCHIVE:-} ${BATSCHED_ARCHIVE:-}; do
        docker load --quiet --input "$archive" >&2 || refuse "$archive: not an image"
    done
}

compose() {
    local files=(--file docker-compose.yml)
    [ -n "${BATSIM_ARCHIVE:-}" ] || files+=(--file scripts/docker-compose.simulate.yml)
    (cd "$folder/project" && docker-compose "${files[@]}" "$@")
}

rebat() { compose run --rm embedded "$@" < /dev/null; }

run() {
    local name small=(--workload workloads/synthetic-small.json)
    small+=(--events failure_events/synthetic-small.events)
    [ -e "$folder/project" ] || refuse "not started; run up first"
    report "baseline and $policy, with ${BATSIM_ARCHIVE:-rebat simulate} as Batsim ..."
    compose up --no-build --no-color
    for name in $(compose ps --quiet); do
        [ "$(docker inspect --format '{{.State.ExitCode}}' "$name")" = 0 ] ||
            failed "a service of compose failed: $(docker inspect --format '{{.Name}}' "$name")"
    done
    report "the same on the embedded engine ..."
    compose run --rm embedded < /dev/null > "$folder/log/embedded" 2>&1 ||
        failed "the embedded run failed" embedded
    for name in baseline "$policy"; do
        rebat validate "results/batsim/${name}_jobs.csv" "${small[@]}"
        rebat compare "results/batsim/${name}_jobs.csv" "results/embedded/$name" --allocations
    done
    cmp "$folder/project/results/campaign/comparison.csv" \
        "$folder/project/results/embedded/comparison.csv"
    report "${BATSCHED_ARCHIVE:-rebat serve as Batsched}, and rebat, side by side ..."
    compose --profile batsched up --no-build --no-color --exit-code-from compare-batsched compare-batsched
    report "no difference; the report is $folder/project/results/campaign/report.html"
}

failed() {
    [ -z "${2:-}" ] || tail -n 5 "$folder/log/$2" >&2
    report "$1"
    exit 1
}

down() {
    [ -d "$folder" ] || { report "stopped"; return 0; }
    [ -e "$folder/ours" ] || refuse "$folder was not created by this script, so it is not removed"
    if [ -e "$folder/project" ] && docker version > /dev/null 2>&1; then
        compose --profile batsched --profile embedded down --timeout 5 > /dev/null 2>&1 || true
    fi
    end_engine
    umount "$folder/system" 2> /dev/null || true
    rm -rf --one-file-system "$folder"
    report "stopped"
}

end_engine() {
    local pid until=$((SECONDS + patience_s))
    pid=$(cat "$folder/dockerd.pid" 2> /dev/null) || return 0
    kill "$pid" 2> /dev/null || return 0
    while kill -0 "$pid" 2> /dev/null; do
        [ $SECONDS -lt $until ] || kill -9 "$pid"
        sleep 0.1
    done
}

main "$@"
