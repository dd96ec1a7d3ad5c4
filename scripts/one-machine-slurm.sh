#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Start a Slurm on this machine to test campaigns: munged, slurmctld and a slurmd per node, in one folder
# and on 127.0.0.1. Needs root and Debian's or Ubuntu's packages, but no systemd or cgroups.
# The nodes share the machine's cores: on a machine of two cores there are two nodes of one core.
#
#   eval "$(scripts/one-machine-slurm.sh up)"   # start it; sets SLURM_CONF in this shell
#   scripts/one-machine-slurm.sh status         # nodes and jobs; exit status 1 if it is not running
#   scripts/one-machine-slurm.sh down           # stop it and remove all its processes and files
#
# `up` installs missing packages (apt-get install slurm-wlm munge); `down` does not remove them.
# SLURM_DIR: the folder (default /tmp/one-machine-slurm). SLURM_NODES: number of nodes (default 2).
# SLURM_OPTIONS: more lines of slurm.conf. They replace lines with the same option.
# SLURM_PORT: the first of 1 + SLURM_NODES ports (default 16817).
# SLURM_ACCOUNTING=1: also start a database (MariaDB, without network) and slurmdbd, for sacct and sacctmgr;
# slurmdbd has the next port. scripts/check-slurm-import.py drives this Slurm and checks rebat's imports.
# If it cannot run, it prints the reason in one line and ends with exit status 2.
set -euo pipefail

folder=${SLURM_DIR:-/tmp/one-machine-slurm}
nodes=${SLURM_NODES:-2}
port=${SLURM_PORT:-16817}
accounting=${SLURM_ACCOUNTING:-}
options=${SLURM_OPTIONS:-}
patience_s=30
export SLURM_CONF=$folder/slurm.conf

report() { echo "one-machine-slurm: $*" >&2; }
refuse() { report "$*"; exit 2; }

main() {
    case ${1:-} in
        up | status | down) "$1" ;;
        *) refuse "expected up, status or down" ;;
    esac
}

up() {
    [ "$(uname -s)" = Linux ] || refuse "needs Linux"
    [ "$(id -u)" = 0 ] || refuse "needs root: slurmd starts the jobs of all users"
    [ ! -e "$folder" ] || refuse "$folder exists: Slurm runs, or an earlier one was not removed; run down first"
    install_packages
    trap 'failed' EXIT
    make_folder
    write_conf
    add_options
    [ -z "$accounting" ] || start_accounting
    start
    wait_until_idle
    trap - EXIT
    report "$nodes nodes are idle; set SLURM_CONF in other shells too"
    echo "export SLURM_CONF=$SLURM_CONF"
}

install_packages() {
    local program missing=() programs=(munged slurmctld slurmd sbatch) packages=(slurm-wlm munge)
    if [ -n "$accounting" ]; then
        programs+=(slurmdbd mariadbd) packages+=(slurmdbd mariadb-server)
    fi
    for program in "${programs[@]}"; do
        command -v "$program" > /dev/null || missing+=("$program")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get > /dev/null || refuse "${missing[*]} is missing, and there is no apt-get to install it"
    report "installing ${packages[*]} ..."
    { apt-get update && DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "${packages[@]}"; } > /tmp/apt.$$ 2>&1 || {
        tail -n 3 /tmp/apt.$$ >&2
        rm -f /tmp/apt.$$
        refuse "apt-get could not install ${packages[*]}"
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
# Listen only on this machine.
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
# Track processes by their group, so that no writable cgroups are needed.
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
$(accounting_conf)
MpiDefault=none
SwitchType=switch/none
PlugStackConfig=/dev/null
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0
# A node may be a part of the machine that slurmd sees.
SlurmdParameters=config_overrides
# With accounting, a node that is set down stays down until it is resumed.
ReturnToService=$([ -n "$accounting" ] && echo 1 || echo 2)
KillWait=5
NodeName=node[1-$nodes] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$first-$((port + nodes))] CPUs=$((cpus > 0 ? cpus : 1)) RealMemory=$memory_mb State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

add_options() {
    local name
    while IFS='=' read -r name _; do
        [ -z "$name" ] || sed -i "/^$name=/d" "$SLURM_CONF"
    done <<< "$options"
    echo "$options" >> "$SLURM_CONF"
}

accounting_conf() {
    if [ -z "$accounting" ]; then
        echo "AccountingStorageType=accounting_storage/none"
    else
        echo "AccountingStorageType=accounting_storage/slurmdbd"
        echo "AccountingStorageHost=127.0.0.1"
        echo "AccountingStoragePort=$((port + nodes + 1))"
        echo "AccountingStoragePass=$folder/munge/socket"
    fi
}

# Start MariaDB, which answers only on a socket in the folder, and slurmdbd.
start_accounting() {
    local until=$((SECONDS + patience_s)) socket=$folder/database/socket
    install -d -m 700 "$folder/database"
    mariadb-install-db --no-defaults --user=root --datadir="$folder/database/data" \
        --auth-root-authentication-method=normal > "$folder/log/database.log" 2>&1 || refuse "no database"
    mariadbd --no-defaults --user=root --datadir="$folder/database/data" --socket="$socket" --skip-networking \
        --pid-file="$folder/database.pid" --innodb-buffer-pool-size=64M >> "$folder/log/database.log" 2>&1 &
    until mariadb-admin --no-defaults --socket="$socket" ping > /dev/null 2>&1; do
        [ $SECONDS -lt $until ] || refuse "the database does not answer after $patience_s s"
        sleep 0.2
    done
    start_munged
    (umask 077 && cat > "$folder/slurmdbd.conf" << CONF
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
DbdHost=$(hostname -s)
DbdAddr=127.0.0.1
DbdPort=$((port + nodes + 1))
SlurmUser=root
PidFile=$folder/slurmdbd.pid
LogFile=$folder/log/slurmdbd.log
CommunicationParameters=NoInAddrAny
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=slurm
CONF
    )
    MYSQL_UNIX_PORT=$socket slurmdbd || refuse "slurmdbd does not start"
    until sacctmgr --immediate --noheader show cluster > /dev/null 2>&1; do
        [ $SECONDS -lt $until ] || refuse "slurmdbd does not answer after $patience_s s"
        sleep 0.2
    done
    sacctmgr --immediate --quiet add cluster one-machine > /dev/null
}

start_munged() {
    munged --key-file="$folder/munge.key" --socket="$folder/munge/socket" \
        --pid-file="$folder/munged.pid" --log-file="$folder/log/munged.log" \
        --seed-file="$folder/munged.seed" || refuse "munged does not start"
}

start() {
    local number
    [ -n "$accounting" ] || start_munged
    slurmctld -c || refuse "slurmctld does not start"
    for number in $(seq "$nodes"); do
        slurmd -N "node$number" || refuse "slurmd does not start as node$number"
    done
}

wait_until_idle() {
    local until=$((SECONDS + patience_s))
    while [ "$(sinfo --noheader --Node --format='%N %T' 2> /dev/null | sort -u | grep -c ' idle$')" != "$nodes" ]; do
        [ $SECONDS -lt $until ] || refuse "the nodes are not idle after $patience_s s"
        sleep 0.2
    done
}

failed() {
    tail -qn 3 "$folder"/log/*.log >&2 || true
    down
}

status() {
    [ -e "$SLURM_CONF" ] || { report "not running"; exit 1; }
    sinfo --Node --format="%N %T %c cpus %m MB" --noheader || { report "does not answer"; exit 1; }
    squeue
}

down() {
    local file pids=()
    [ -d "$folder" ] || { report "stopped"; return 0; }
    [ -e "$folder/munge.key" ] || refuse "$folder was not created by this script, so it is not removed"
    end_jobs
    for file in "$folder"/slurmd-*.pid "$folder"/{slurmctld,slurmdbd,munged,database}.pid; do
        [ ! -s "$file" ] || pids+=("$(cat "$file")")
    done
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2> /dev/null || true
    wait_until_gone "${pids[@]}"
    rm -rf "$folder"
    report "stopped"
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
