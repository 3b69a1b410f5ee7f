import type { PodList } from '../../../runtime/cluster/providers/kubernetes/pods.js';
import { podsOf } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { api, namespace } from './context.js';

const path = `/api/v1/namespaces/${namespace}/resourcequotas`,
  NAME = 'fewer';

/** Allows so many pods in the namespace; undefined: any number again. Resolves when it holds. */
export async function limit(pods: number | undefined): Promise<void> {
  if (pods === undefined) return remove();
  const body = {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: NAME },
    spec: { hard: { pods: String(pods) } },
  };
  const { items = [] } = await api.call<PodList>('GET', podsOf(namespace), { what: 'list pods' }),
    made = await api.call<Quota>('POST', path, { body, what: 'create a quota' });
  await counted(items.length, made.metadata?.resourceVersion ?? '0', AbortSignal.timeout(120_000));
}

async function remove(): Promise<void> {
  try {
    await api.call('DELETE', `${path}/${NAME}`, { what: 'delete the quota' });
  } catch (e) {
    if (!(e instanceof StudioError && e.error.details?.['status'] === 404)) throw e;
  }
}

/** A quota holds when its controller has counted every pod; soon after a restart of the API server that takes half a minute. */
async function counted(pods: number, resourceVersion: string, signal: AbortSignal): Promise<void> {
  const query = { fieldSelector: `metadata.name=${NAME}`, resourceVersion };
  for (;;)
    for await (const e of api.watch<Quota>(path, { query, signal, what: 'watch the quota' }))
      if (Number(e.object.status?.used?.pods) >= pods) return;
}

interface Quota {
  readonly metadata?: { readonly resourceVersion?: string };
  readonly status?: { readonly used?: { readonly pods?: string } };
}
