#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Slurm on this machine, to try campaigns on: munged, slurmctld and a slurmd per node, all in a
# folder of their own and on 127.0.0.1. Debian's or Ubuntu's packages, root, no systemd, no cgroups,
# no accounting. The nodes share the machine's cores; where it has two, there are two nodes of one.
#
#   eval "$(scripts/one-machine-slurm.sh up)"   # start it; sets SLURM_CONF in this shell
#   scripts/one-machine-slurm.sh status         # nodes and jobs; exit status 1 where it is down
#   scripts/one-machine-slurm.sh down           # end it: no process and no file is left of it
#
# Packages that are missing are installed by `up` (apt-get install slurm-wlm munge) and stay.
# SLURM_DIR: the folder (default /tmp/one-machine-slurm). SLURM_NODES: how many nodes (default 2).
# SLURM_PORT: the first of 1 + SLURM_NODES ports (default 16817).
# Exit status 2, and one line that says why, where it cannot run.
set -euo pipefail

folder=${SLURM_DIR:-/tmp/one-machine-slurm}
nodes=${SLURM_NODES:-2}
port=${SLURM_PORT:-16817}
patience_s=30
export SLURM_CONF=$folder/slurm.conf

tell() { echo "one-machine-slurm: $*" >&2; }
refuse() { tell "$*"; exit 2; }

main() {
    case ${1:-} in
        up | status | down) "$1" ;;
        *) refuse "expected up, status or down" ;;
    esac
}

up() {
    [ "$(uname -s)" = Linux ] || refuse "needs Linux"
    [ "$(id -u)" = 0 ] || refuse "needs root: slurmd starts the jobs of all users"
    [ ! -e "$folder" ] || refuse "$folder is there already: it runs, or down comes first"
    install_packages
    trap 'failed' EXIT
    make_folder
    write_conf
    start
    wait_until_idle
    trap - EXIT
    tell "$nodes nodes are idle; another shell needs SLURM_CONF too"
    echo "export SLURM_CONF=$SLURM_CONF"
}

install_packages() {
    local program missing=()
    for program in munged slurmctld slurmd sbatch; do
        command -v "$program" > /dev/null || missing+=("$program")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get > /dev/null || refuse "no ${missing[*]} here, and no apt-get to install it"
    tell "installing slurm-wlm and munge ..."
    { apt-get update && DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends slurm-wlm munge; } > /tmp/apt.$$ 2>&1 || {
        tail -n 3 /tmp/apt.$$ >&2
        rm -f /tmp/apt.$$
        refuse "apt-get could not install slurm-wlm and munge"
    }
    rm -f /tmp/apt.$$
}

make_folder() {
    install -d -m 755 "$folder" "$folder/munge" "$folder/log" "$folder/spool"
    install -d -m 700 "$folder/state"
    (umask 077 && head -c 1024 /dev/urandom > "$folder/munge.key")
}

write_conf() {
    local cpus memory_mb first=$((port + 1))
    cpus=$(($(nproc) / nodes))
    memory_mb=$(($(awk '/^MemTotal/ {print $2}' /proc/meminfo) / 1024 / nodes))
    cat > "$SLURM_CONF" << CONF
ClusterName=one-machine
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
# Nothing listens beyond this machine.
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdSpoolDir=$folder/spool/%n
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdLogFile=$folder/log/slurmd-%n.log
# Processes are told by their group: a machine without writable cgroups will do.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
PlugStackConfig=/dev/null
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0
# A node may be a part of the machine, and not the one that slurmd sees.
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName=node[1-$nodes] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$first-$((port + nodes))] CPUs=$((cpus > 0 ? cpus : 1)) RealMemory=$memory_mb State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

start() {
    local number
    munged --key-file="$folder/munge.key" --socket="$folder/munge/socket" \
        --pid-file="$folder/munged.pid" --log-file="$folder/log/munged.log" \
        --seed-file="$folder/munged.seed" || refuse "munged does not start"
    slurmctld -c || refuse "slurmctld does not start"
    for number in $(seq "$nodes"); do
        slurmd -N "node$number" || refuse "slurmd does not start as node$number"
    done
}

wait_until_idle() {
    local until=$((SECONDS + patience_s))
    while [ "$(sinfo --noheader --Node --format=%T 2> /dev/null | grep -c '^idle$')" != "$nodes" ]; do
        [ $SECONDS -lt $until ] || refuse "the nodes are not idle after $patience_s s"
        sleep 0.2
    done
}

failed() {
    tail -qn 3 "$folder"/log/*.log >&2 || true
    down
}

status() {
    [ -e "$SLURM_CONF" ] || { tell "down"; exit 1; }
    sinfo --Node --format="%N %T %c cpus %m MB" --noheader || { tell "does not answer"; exit 1; }
    squeue
}

down() {
    local file pids=()
    [ -d "$folder" ] || { tell "is down"; return 0; }
    [ -e "$folder/munge.key" ] || refuse "$folder is not this script's: left alone"
    end_jobs
    for file in "$folder"/slurmd-*.pid "$folder"/slurmctld.pid "$folder"/munged.pid; do
        [ ! -s "$file" ] || pids+=("$(cat "$file")")
    done
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2> /dev/null || true
    wait_until_gone "${pids[@]}"
    rm -rf "$folder"
    tell "is down"
}

end_jobs() {
    local until=$((SECONDS + patience_s))
    scancel --partition=main 2> /dev/null || return 0
    while [ -n "$(squeue --noheader 2> /dev/null)" ] && [ $SECONDS -lt $until ]; do
        sleep 0.2
    done
}

wait_until_gone() {
    local until=$((SECONDS + patience_s))
    while [ $# -gt 0 ]; do
        if ! kill -0 "$1" 2> /dev/null; then
            shift
        elif [ $SECONDS -lt $until ]; then
            sleep 0.1
        else
            kill -9 "$1"
        fi
    done
}

main "$@"
