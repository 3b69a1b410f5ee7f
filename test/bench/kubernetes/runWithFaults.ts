import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROLE } from '../../../runtime/cluster/providers/kubernetes/podSpec.js';
import type { PodList } from '../../../runtime/cluster/providers/kubernetes/pods.js';
import { podsOf } from '../../../runtime/cluster/providers/kubernetes/provider.js';
import { makeFaults, type FaultyCluster } from '../../helpers/kubernetes/faultSequence.js';
import { FaultyRun, faultyRunFile } from '../../helpers/kubernetes/faultyRun.js';
import { endAll } from '../../helpers/run/cli.js';
import { api, arg, environment, load, namespace, note, optionsOf } from './context.js';
import { limit } from './quota.js';

/** A place that failed often is left alone for five minutes. */
const PATIENCE_MS = 400_000;

/** A run that trains while one fault after another is made; then its journal is judged. */
export async function runWithFaults(): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-kubernetes-run-')),
    runFile = join(dir, 'run.json'),
    began = { load: load() };
  await writeFile(runFile, JSON.stringify(faultyRunFile(optionsOf())));
  try {
    const run = await FaultyRun.start({ runFile, runs: join(dir, 'runs'), env: environment, patienceMs: PATIENCE_MS });
    const faults = await makeFaults(run, cluster, {
      replaced: true,
      told: (fault, cost) => process.stdout.write(`  ${fault}: ${JSON.stringify(cost)}\n`),
    });
    const judged = await run.stop(),
      left = (await cluster.pods()).length,
      problems = [...judged.problems, ...(left === 0 ? [] : [`${left} pods are left behind`])];
    note('a run with faults', { ...began, faults, ...judged, problems });
    if (problems.length > 0 || judged.rewardedErrors > 0)
      throw new Error(`the run with faults: ${problems.join('; ')}`);
  } finally {
    await endAll();
    await rm(dir, { recursive: true, force: true });
  }
}

export const cluster: FaultyCluster = {
  pods: async () => {
    const all = await api.call<PodList>('GET', podsOf(namespace), {
      query: { labelSelector: `${ROLE}=desktop` },
      what: 'list pods',
    });
    return (all.items ?? []).filter((p) => !p.metadata?.deletionTimestamp).map((p) => p.metadata!.name!);
  },
  deletePod: async (name) => {
    await api.call('DELETE', `${podsOf(namespace)}/${name}`, { query: { gracePeriodSeconds: 0 }, what: 'delete pods' });
  },
  ...(arg.kill && arg.back
    ? {
        serverAway: async () => {
          await sh(arg.kill!);
          await sh(arg.back!);
        },
      }
    : {}),
  ...(arg.kubelet ? { kubeletAway: () => sh(arg.kubelet!) } : {}),
  ...(arg['image-away'] && arg['image-back']
    ? { imageAway: (away) => sh(away ? arg['image-away']! : arg['image-back']!) }
    : {}),
  limit,
};

async function sh(command: string): Promise<void> {
  await promisify(execFile)('sh', ['-c', command]);
}
