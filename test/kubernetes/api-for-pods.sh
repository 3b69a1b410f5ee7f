#!/usr/bin/env bash
# api-for-pods.sh [off]: pods of the cluster of shared/kube reach its API server at the service's address and can check its
# certificate, as where kube-proxy runs: a route for new pods, the address on their bridge, a program that passes connections
# on, and controllers that hand out the certificate. Run it as root after up.sh, which writes the pods' network anew.
set -euo pipefail
dir=${KUBE_DIR:-$HOME/.cache/dart-kube}
service=10.96.0.1 port=${KUBE_PORT:-16443} pid=$dir/run/api-for-pods.pid
if [ -e "$pid" ] && grep -q createServer "/proc/$(cat "$pid")/cmdline" 2>/dev/null; then kill "$(cat "$pid")"; fi
rm -f "$pid"
sed -i 's#,"routes":\[[^]]*\]##' "$dir/cni/10-pods.conflist"
ip addr del $service/32 dev dartpods0 2>/dev/null || true
[ "${1:-on}" = off ] && exit
sed -i 's#"subnet":"10.244.0.0/24"}#"subnet":"10.244.0.0/24","routes":[{"dst":"10.96.0.0/24"}]}#' "$dir/cni/10-pods.conflist"
ip addr add $service/32 dev dartpods0
cd "$dir"
kill "$(cat run/controllers.pid)" 2>/dev/null || true
setsid ./kube-controller-manager --kubeconfig=kubeconfig --service-account-private-key-file=sa.key --root-ca-file=certs/apiserver.crt \
  --leader-elect=false --secure-port=0 >> log/controllers.log 2>&1 < /dev/null &
echo $! > run/controllers.pid
setsid node -e "
require('net').createServer((a) => {
  const b = require('net').connect($port, '127.0.0.1');
  a.pipe(b).pipe(a);
  for (const s of [a, b]) s.on('error', () => { a.destroy(); b.destroy(); });
}).listen(443, '$service');
" < /dev/null > /dev/null 2>&1 &
echo $! > "$pid"
