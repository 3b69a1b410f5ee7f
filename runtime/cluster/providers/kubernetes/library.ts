/**
 * The used part of the Kubernetes client library: a kubeconfig with its credentials and TLS. It is a bundle of its own
 * (scripts/build.mjs), read by the first run that uses Kubernetes.
 */
export { KubeConfig } from '@kubernetes/client-node/dist/config.js';
