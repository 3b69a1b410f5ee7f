#!/usr/bin/env bash
# Restarts the kubelet of a cluster that runs on this machine: ends it, and starts it again as it was started.
# kubelet.sh [SECONDS]   stays away for so long. KUBE_DIR is the cluster's folder, with run/kubelet.pid and log/.
set -euo pipefail
dir=${KUBE_DIR:-$HOME/.cache/dart-kube}
cd "$dir"
pid=$(cat run/kubelet.pid)
mapfile -d '' -t command < "/proc/$pid/cmdline"
kill "$pid"
tail --pid="$pid" -f /dev/null
sleep "${1:-0}"
setsid "${command[@]}" >> log/kubelet.log 2>&1 < /dev/null &
echo $! > run/kubelet.pid
