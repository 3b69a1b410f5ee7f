import type { FaultCost, FaultyRun } from './faultyRun.js';

/** What can be done to a cluster while a run uses it; what is absent cannot be done to this one. */
export interface FaultyCluster {
  /** Names of the desktops' pods. */
  pods(): Promise<readonly string[]>;
  deletePod(name: string): Promise<void>;
  /** The API server ends, and is started again. */
  serverAway?(): Promise<void>;
  /** The node's kubelet ends, and is started again. */
  kubeletAway?(): Promise<void>;
  /** Sets a quota of so many pods; undefined: none any more. Resolves when it holds. */
  limit(pods: number | undefined): Promise<void>;
  /** Takes the desktops' image from the nodes, or gives it back. */
  imageAway?(away: boolean): Promise<void>;
}
export type FaultName =
  'pod deleted' | 'API server killed' | 'kubelet restarted' | 'quota' | 'image missing for a replaced pod';
export type FaultRecord = Partial<Record<FaultName, FaultCost>>;

export interface SequenceOptions {
  /**
   * Waits, after quota and image, for a desktop on the place that had none. A place that failed five times in a row may
   * be left alone for five minutes.
   */
  readonly replaced: boolean;
  readonly told?: (fault: FaultName, cost: FaultCost) => void;
}

/** Makes every fault that can be made, one after another, each after the run has gone on from the one before it. */
export async function makeFaults(
  run: FaultyRun,
  cluster: FaultyCluster,
  { replaced, told }: SequenceOptions,
): Promise<FaultRecord> {
  const record: FaultRecord = {};
  const fault = async (name: FaultName, make: (() => Promise<void>) | undefined, podLost: boolean): Promise<void> => {
    if (!make) return;
    const cost = await run.fault(name, make, { podLost });
    record[name] = cost;
    told?.(name, cost);
  };
  const imageAway = cluster.imageAway?.bind(cluster);
  await fault('pod deleted', () => deleteOne(run, cluster), true);
  await fault('quota', () => underQuota(run, cluster), replaced);
  await fault('image missing for a replaced pod', imageAway && (() => withoutImage(run, cluster, imageAway)), replaced);
  await fault('kubelet restarted', cluster.kubeletAway?.bind(cluster), false);
  // Last: the cluster's own controllers need half a minute to find back to it.
  await fault('API server killed', cluster.serverAway?.bind(cluster), false);
  return record;
}

/** Deletes the pod of a desktop that a rollout uses. */
async function deleteOne(run: FaultyRun, cluster: FaultyCluster): Promise<void> {
  await run.until('a rollout is under way', () => run.desktops.length > 0);
  const desktop = run.desktops.at(-1)!,
    pod = (await cluster.pods()).find((name) => name.endsWith(podSuffix(desktop)));
  if (pod === undefined) throw new Error(`no pod belongs to the desktop ${desktop}`);
  await cluster.deletePod(pod);
  run.lost(desktop);
}
/** Desktops are called by the last characters of their pods' names. */
const podSuffix = (desktop: string): string => desktop.replace(/^k8s-/, '');

/** A pod is deleted under a quota that allows no other: the run goes on with the desktops that are left. */
async function underQuota(run: FaultyRun, cluster: FaultyCluster): Promise<void> {
  const left = (await cluster.pods()).length - 1;
  await cluster.limit(left);
  try {
    await deleteOne(run, cluster);
    await goesOn(run, 'under the quota');
    const now = (await cluster.pods()).length;
    if (now > left) throw new Error(`${now} pods run under a quota of ${left}`);
  } finally {
    await cluster.limit(undefined);
  }
}

/** A pod is deleted while the node lacks the image: the one in its place cannot start until the image is back. */
async function withoutImage(
  run: FaultyRun,
  cluster: FaultyCluster,
  imageAway: (away: boolean) => Promise<void>,
): Promise<void> {
  await imageAway(true);
  try {
    await deleteOne(run, cluster);
    await goesOn(run, 'without the image');
  } finally {
    await imageAway(false);
  }
}

/** So many rollouts finish on other desktops that a pod in the place of the deleted one was tried meanwhile. */
async function goesOn(run: FaultyRun, what: string): Promise<void> {
  const enough = run.finished + 5;
  await run.until(`rollouts finish on the other desktops ${what}`, () => run.finished >= enough);
}
