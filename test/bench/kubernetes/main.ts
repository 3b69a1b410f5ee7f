// `npm run test:kubernetes -- --context NAME`: the provider, and runs with it, on a real cluster, with rights to create
// namespaces. test/kubernetes/README.md has the options and what each part does.
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { cpus, release } from 'node:os';
import { dirname } from 'node:path';
import { manifests } from '../../../runtime/cluster/providers/kubernetes/manifests.js';
import { tryCluster } from '../../../runtime/cluster/providers/kubernetes/tryOut.js';
import { demoDesktops } from '../../../runtime/config/index.js';
import { toRunError } from '../../../runtime/domain/index.js';
import { api, arg, desktopsOf, found, load, namespace, note, open, provider, spec } from './context.js';
import { faults, nobodyThere, serverKilled } from './desktopFaults.js';
import { job } from './job.js';
import { pathOf } from './objects.js';
import { quickstart } from './quickstart.js';
import { runWithFaults } from './runWithFaults.js';
import { speed } from './speed.js';

/** Applies the manifests, those of a Job and a quota as a dry run. */
async function prepare(): Promise<void> {
  const all = manifests({ desktops: desktopsOf(), job: { image: 'example.com/runtime:1', runFile: '{}' } });
  const accepted: string[] = [];
  for (const o of all as { apiVersion: string; kind: string }[]) {
    // The part `job` makes those that it needs.
    const dry = ['Job', 'PersistentVolumeClaim', 'ConfigMap', 'ResourceQuota'].includes(o.kind);
    await api.call('POST', pathOf(o), {
      body: o,
      query: { fieldValidation: 'Strict', ...(dry ? { dryRun: 'All' } : {}) },
      what: `create ${o.kind}`,
    });
    accepted.push(o.kind);
  }
  note('manifests that the API server accepts with strict validation', accepted);
}

async function doctor(): Promise<void> {
  note('doctor', await tryCluster(desktopsOf(), spec, { provider: provider(), more: demoDesktops(desktopsOf()) }));
}

/** By the names that `--only` has for them. */
const parts: Readonly<Record<string, () => Promise<void>>> = {
  doctor,
  speed,
  faults,
  idle: nobodyThere,
  run: runWithFaults,
  // Not before the run: a cluster's own controllers need a minute to find back to a server that was killed.
  server: serverKilled,
  job,
  quickstart,
};

const chosen = arg.only?.split(',') ?? Object.keys(parts),
  unknown = chosen.find((p) => !(p in parts));
if (unknown !== undefined) throw new Error(`--only ${unknown}: there are ${Object.keys(parts).join(', ')}`);
// What other parts recorded before stays.
if (arg.only !== undefined && arg.json !== undefined && existsSync(arg.json))
  Object.assign(found, JSON.parse(await readFile(arg.json, 'utf8')));
const version = await api.call<{ gitVersion?: string }>('GET', '/version', { what: 'say its version' });
note('machine', {
  kubernetes: version.gitVersion,
  cores: cpus().length,
  kernel: release(),
  load: load(),
  at: new Date().toISOString().slice(0, 10),
});
let failed: unknown;
try {
  await prepare();
  for (const name of chosen) {
    delete found[`${name} failed`];
    await parts[name]!().catch((e: unknown) => {
      failed ??= e;
      note(`${name} failed`, toRunError(e));
    });
  }
} finally {
  for (const p of open) await p.dispose().catch((e: unknown) => note('dispose', toRunError(e).message));
  const gone = api.call('DELETE', `/api/v1/namespaces/${namespace}`, { what: 'delete the namespace' });
  await gone.catch((e: unknown) => note(`${namespace} is left behind`, toRunError(e).message));
  if (arg.json) {
    await mkdir(dirname(arg.json), { recursive: true });
    await writeFile(arg.json, JSON.stringify(found, null, 2) + '\n');
  }
}
process.exit(failed ? 1 : 0);
