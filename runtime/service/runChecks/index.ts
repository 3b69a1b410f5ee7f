import { stat } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';
import { orUndefined } from '../../concurrency/failures.js';
import { withoutSlashes } from '../../foreign/address.js';
import { startsEngine, type RunConfig } from '../../config/index.js';
import { toRunError } from '../../domain/index.js';
import type { CheckRow } from '../../protocol/types.js';
import { apiKeyOf } from '../../config/apiKey.js';
import { notTrainable } from '../../config/trained.js';
import { screenOf } from '../../run/backends/vlmProbe.js';
import { withFoldersAbove } from '../../files/foldersAbove.js';
import type { SharedFolder } from './adapterFolder.js';
import { checkCluster } from './cluster.js';
import { updateCost, type UpdateCost } from './cost.js';
import { checkModelDisk } from './modelDisk.js';
import { checkModelServer } from './modelServer.js';
import { checkOwnEngine } from './ownEngine.js';
import { checkStorage } from './storage.js';
import { Table } from './table.js';
import { checkTrainingServer } from './trainingServer.js';
import type { ModelServerCheck } from './types.js';

export { costLines, type UpdateCost } from './cost.js';
export { checkTasks } from './tasks.js';

export interface RunChecks {
  readonly checks: readonly CheckRow[];
  /** Cost of an update; absent where nothing remote is trained. */
  readonly update?: UpdateCost;
}
type Env = Readonly<Record<string, string | undefined>>;

/** Everything a run file needs beyond its machine: servers, keys, folders and disk. `base`: where `store.dir` starts. */
export async function runChecks(c: RunConfig, base: string, env: Env = process.env): Promise<RunChecks> {
  const update = updateCost(c);
  const [servers, engine, storage, model, cluster] = await Promise.all([
    modelServers(c, base, env),
    trainingServer(c, base, env),
    checkStorage(c, base, update),
    checkModelDisk(c, base),
    checkCluster(c),
  ]);
  const table = new Table(''),
    untrainable = notTrainable(c);
  if (untrainable) table.wrong(untrainable.key, untrainable.what, untrainable.remedy);
  return {
    checks: [...table.rows, ...servers, ...engine, ...storage, ...model, ...cluster],
    ...(update ? { update } : {}),
  };
}

/** The key of an option, or the row that says what is wrong with it. */
function keyOf(option: string, name: string | undefined, env: Env): { readonly key: string | undefined } | CheckRow {
  try {
    return { key: apiKeyOf(option, name, env) };
  } catch (e) {
    const { message, remedy } = toRunError(e),
      table = new Table('');
    table.wrong(option, message, remedy);
    return table.rows[0]!;
  }
}

async function modelServers(c: RunConfig, base: string, env: Env): Promise<CheckRow[]> {
  const { kind, vlm, openai, temperature } = c.policy,
    options = (section: 'vlm' | 'openai', urls: string): ModelServerCheck['options'] => ({
      url: `policy.${section}.${urls}`,
      key: `policy.${section}.apiKeyEnv`,
    });
  const of = kind === 'vlm' ? vlm : kind === 'openai' ? openai : undefined;
  if (!of) return [];
  const names = kind === 'vlm' ? options('vlm', 'endpoints') : options('openai', 'baseUrls'),
    key = keyOf(names.key, of.apiKeyEnv, env);
  if (!('key' in key)) return [key];
  const shared = {
    apiKey: key.key,
    options: names,
    model: of.model,
    screen: c.desktops.screen,
    images: of.images,
    maxTokens: of.maxTokens,
    steps: c.rollout.maxSteps,
    temperature,
    coordinates: of.coordinates,
    pixels: kind === 'vlm' ? c.trainer.remote?.options : undefined,
  };
  const named = c.trainer.remote?.url,
    engine = named === undefined ? undefined : new URL(named).origin;
  const folder = await sharedFolder(c, base);
  const rows = await Promise.all(
    ('endpoints' in of ? of.endpoints : of.baseUrls).map((raw) => {
      const url = withoutSlashes(raw);
      if (!('endpoints' in of)) return checkModelServer({ ...shared, url });
      const training = {
        imageToken: of.imageToken,
        alternatives: of.alternatives,
        adapters: of.adapters,
        shared: folder,
        rank: c.trainer.remote?.rank ?? 0,
        same: new URL(url).origin === engine,
      };
      return checkModelServer({ ...shared, url, training });
    }),
  );
  return rows.flat();
}

/**
 * Where the run will write adapters for other servers (or the nearest folder above that is there), or the folder where
 * somebody else does, if this machine has the same path.
 */
async function sharedFolder(c: RunConfig, base: string): Promise<SharedFolder | undefined> {
  const isThere = async (dir: string): Promise<boolean> =>
    (await orUndefined(stat(dir), 'it is not there')) !== undefined;
  if (!startsEngine(c)) {
    const dir = c.policy.vlm?.adapters;
    return dir !== undefined && isAbsolute(dir) && (await isThere(dir)) ? { dir, written: false } : undefined;
  }
  const store = resolve(base, c.store.dir);
  for (const dir of withFoldersAbove(store)) if (await isThere(dir)) return { dir, written: dir === store };
  return undefined;
}

async function trainingServer(c: RunConfig, base: string, env: Env): Promise<CheckRow[]> {
  const { remote } = c.trainer;
  if (c.policy.kind !== 'vlm' || !remote || !c.policy.vlm) return [];
  if (startsEngine(c) || remote.url === undefined) return checkOwnEngine(c.policy.vlm.model, base);
  const key = keyOf('trainer.remote.apiKeyEnv', remote.apiKeyEnv, env);
  if (!('key' in key)) return [key];
  return checkTrainingServer({ url: remote.url, apiKey: key.key, model: c.policy.vlm.model, screen: screenOf(c) });
}
