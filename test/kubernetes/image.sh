#!/usr/bin/env bash
# Takes an image from the node of a cluster that runs on this machine, or gives it back: image.sh away|back IMAGE
# The pods that have it go on. KUBE_DIR is the cluster's folder, with run/containerd.sock.
set -euo pipefail
images() { ctr -a "${KUBE_DIR:-$HOME/.cache/dart-kube}/run/containerd.sock" -n k8s.io images "$@" > /dev/null; }
case "$2" in */*/*) ref=$2 ;; *) ref=docker.io/$2 ;; esac
aside=docker.io/dart-studio/aside:1
case "$1" in
  away) images tag --force "$ref" "$aside"; images rm --sync "$ref" ;;
  back) images tag --force "$aside" "$ref"; images rm "$aside" ;;
  *) echo "image.sh away|back IMAGE" >&2; exit 2 ;;
esac
