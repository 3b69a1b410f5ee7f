import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectEngine, ensureImage } from '../../../runtime/cluster/imageBuild.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { ApiServer, stuck } from '../../helpers/kubernetes/apiServer.js';
import { Containers } from '../../helpers/kubernetes/containers.js';
import { makeFaults, type FaultyCluster } from '../../helpers/kubernetes/faultSequence.js';
import { FaultyRun, faultyRunFile } from '../../helpers/kubernetes/faultyRun.js';
import { endAll, ensureBundle } from '../../helpers/run/cli.js';

const engine = await engineHere();
if (!engine) console.log('skipped: a run on Kubernetes (no Docker engine answers here)');

/** How long the kubelet and the API server stay away: a part of the fault, not a wait for something. */
const AWAY_MS = 1000;
/** What a real API server (1.34) answers while the node's kubelet does not listen. */
const NO_KUBELET = {
  code: 500,
  message: 'error dialing backend: dial tcp 10.244.0.1:10260: connect: connection refused',
};

/** The faults of `npm run test:kubernetes`, made on the API's small server. */
const faulty = (api: ApiServer): FaultyCluster => ({
  pods: () => Promise.resolve([...api.pods.keys()]),
  deletePod: (name) => api.delete(name),
  serverAway: async () => {
    await api.kill();
    await after(AWAY_MS);
    await api.back();
  },
  kubeletAway: async () => {
    api.faults.refuseExec = Array.from({ length: 1000 }, () => NO_KUBELET);
    api.cut();
    await after(AWAY_MS);
    delete api.faults.refuseExec;
  },
  limit: (pods) => {
    if (pods === undefined) delete api.faults.quota;
    else api.faults.quota = pods;
    return Promise.resolve();
  },
  imageAway: (away) => {
    if (away) api.faults.start = stuck.imageMissing;
    else delete api.faults.start;
    return Promise.resolve();
  },
});

describe.skipIf(!engine)('a training run on Kubernetes', () => {
  let api: ApiServer, image: string, dir: string;
  beforeAll(async () => {
    ensureBundle();
    image = await ensureImage(connectEngine());
    api = await ApiServer.open(new Containers());
    dir = await mkdtemp(join(tmpdir(), 'dart-kubernetes-run-'));
  });
  afterEach(endAll);
  afterAll(async () => {
    await api.close();
    await rm(dir, { recursive: true, force: true });
  });

  /** The server as a context of a kubeconfig, with which the run is started as a user starts it. */
  async function context(): Promise<Record<string, string>> {
    const { server } = await api.access(),
      file = join(dir, 'kubeconfig');
    await writeFile(
      file,
      [
        'apiVersion: v1',
        'kind: Config',
        `clusters: [{name: c, cluster: {server: "${server.origin}", insecure-skip-tls-verify: true}}]`,
        'users: [{name: u, user: {token: t}}]',
        'contexts: [{name: small, context: {cluster: c, user: u, namespace: desktops}}]',
      ].join('\n'),
    );
    return { KUBECONFIG: file, DART_STUDIO_KUBE_CONTEXT: 'small' };
  }

  it('goes on after every fault of the cluster: nothing is lost, and no fault has a reward', async () => {
    const file = join(dir, 'run.json');
    await writeFile(file, JSON.stringify(faultyRunFile({ image })));
    const run = await FaultyRun.start({
        runFile: file,
        runs: join(dir, 'runs'),
        env: await context(),
        patienceMs: 90_000,
      }),
      costs = await makeFaults(run, faulty(api), { replaced: false }),
      judged = await run.stop();
    expect(judged.problems).toEqual([]);
    expect(judged).toMatchObject({ rewardedErrors: 0 });
    expect(judged.updates).toBeGreaterThan(0);
    // A cut channel is no lost desktop.
    expect(costs['API server killed']!.errors).toEqual({});
    expect(costs['kubelet restarted']!.errors).toEqual({});
    expect(Object.keys(costs)).toEqual([
      'pod deleted',
      'quota',
      'image missing for a replaced pod',
      'kubelet restarted',
      'API server killed',
    ]);
    expect(api.pods.size).toBe(0);
  });
});
