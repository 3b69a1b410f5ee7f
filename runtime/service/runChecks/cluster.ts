import { specOf } from '../../cluster/provide.js';
import { tryCluster } from '../../cluster/providers/kubernetes/tryOut.js';
import { demoDesktops, makesDemonstrations, type RunConfig } from '../../config/index.js';
import type { CheckRow } from '../../protocol/types.js';
import { Table } from './table.js';

/** Desktops on Kubernetes, tried: rights, one desktop, its network, and room for all. Starts pods and removes them. */
export async function checkCluster(c: RunConfig): Promise<CheckRow[]> {
  if (c.desktops.provider !== 'kubernetes') return [];
  const table = new Table('');
  const more = makesDemonstrations(c) ? demoDesktops(c.desktops) : 0;
  for (const f of await tryCluster(c.desktops, specOf(c.desktops), { more }))
    if (f.level === 'ok') table.ok(f.name, f.detail);
    else if (f.level === 'wrong') table.wrong(f.name, f.detail, f.remedy ?? '');
    else table.doubtful(f.name, f.detail, f.remedy ?? '');
  return table.rows;
}
