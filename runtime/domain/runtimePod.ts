/** Names that the Job of `dart-studio kubernetes manifests --job` and a window that attaches to its runtime share. */
export const RUNTIME_POD = {
  /** Namespace where no other is named. */
  namespace: 'dart-desktops',
  /** Labels of the pod, by which windows find it. */
  labels: { 'app.kubernetes.io/name': 'dart-studio', 'dart-studio/role': 'runtime' },
  container: 'runtime',
  /** Folder of the daemon's record, with port and token: in a volume that ends with the pod. */
  storage: '/studio/runtime',
} as const;
