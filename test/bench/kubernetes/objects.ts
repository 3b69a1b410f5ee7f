import { namespace } from './context.js';

/** Objects that belong to no namespace. */
const CLUSTER_WIDE: ReadonlySet<string> = new Set(['Namespace', 'PersistentVolume']);

/** Where objects of this kind are created. */
export function pathOf(o: { readonly apiVersion: string; readonly kind: string }): string {
  const base = o.apiVersion === 'v1' ? '/api/v1' : `/apis/${o.apiVersion}`,
    plural = o.kind === 'NetworkPolicy' ? 'networkpolicies' : `${o.kind.toLowerCase()}s`;
  return CLUSTER_WIDE.has(o.kind) ? `${base}/${plural}` : `${base}/namespaces/${namespace}/${plural}`;
}
