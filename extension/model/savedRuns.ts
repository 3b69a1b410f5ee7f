/**
 * Runs as their folders tell them, for windows without a runtime: run.json says which run it is, and the summary that
 * the runtime leaves beside it what it came to. Nothing in them is trusted. No `vscode`.
 */
import { basename, join } from 'node:path';
import { labelled, labelName, runLabelOf, type RunLabel } from '../../runtime/protocol/runLabel.js';
import { isObject } from '../../runtime/protocol/shared.js';
import { lacksCheckpoints, summaryName } from '../../runtime/protocol/version.js';
import type { EvalPoint, RunState, RunSummary } from '../../runtime/protocol/types.js';
import { t } from '../words.js';

/** A run that no runtime has read: `unread` where its folder does not say what it came to. */
export type ListedRun = RunSummary & { readonly unread?: boolean };
export interface RunFiles {
  /** Names in a folder; empty where it cannot be read. */
  list(dir: string): Promise<readonly string[]>;
  /** Text of a small file; undefined where it is not there or larger than any of ours. */
  read(file: string): Promise<string | undefined>;
}
const metaName = 'run.json';
/** Folders under one root that are looked into. */
const most = 2000;

/** Runs under these roots (each a folder of run folders, or a run folder), newest first. */
export async function savedRuns(roots: readonly string[], files: RunFiles): Promise<ListedRun[]> {
  const found = new Map<string, ListedRun>();
  for (const root of roots) {
    const own = await savedRun(root, files);
    if (own) found.set(root, own);
    else
      for (const name of (await files.list(root)).slice(0, most)) {
        const dir = join(root, name),
          run = found.has(dir) ? undefined : await savedRun(dir, files);
        if (run) found.set(dir, run);
      }
  }
  return [...found.values()].sort((a, b) => b.createdAt - a.createdAt || (a.run < b.run ? 1 : -1));
}

async function savedRun(dir: string, files: RunFiles): Promise<ListedRun | undefined> {
  const json = await files.read(join(dir, metaName)),
    meta = objectOf(json);
  if (!meta || typeof meta['id'] !== 'string')
    return json !== undefined || (await files.list(dir)).includes(metaName) ? damagedRun(dir) : undefined;
  const s = objectOf(await files.read(join(dir, summaryName))),
    config = isObject(meta['config']) ? meta['config'] : {},
    base = {
      run: dir,
      id: meta['id'],
      name: text(meta['name']) ?? basename(dir),
      createdAt: number(meta['createdAt']) ?? 0,
      ...(number(config['seed']) === undefined ? {} : { seed: number(config['seed'])! }),
    };
  const label = parsedLabel(await files.read(join(dir, labelName)));
  if (!s)
    return labelled<ListedRun>({ ...base, state: 'stopped', rollouts: 0, version: 0, evals: [], unread: true }, label);
  const evals = Array.isArray(s['evals']) ? s['evals'].filter((x): x is number => number(x) !== undefined) : [],
    lastEval = evalOf(s['lastEval']),
    version = number(s['version']) ?? 0,
    kept = version > 0 ? await files.list(join(dir, 'checkpoints')) : [];
  const run: ListedRun = {
    ...base,
    state: stateOf(s['state']),
    rollouts: number(s['rollouts']) ?? 0,
    version,
    evals,
    ...(lastEval ? { lastEval } : {}),
    ...(s['collection'] === true ? { collection: true } : {}),
    ...(lacksCheckpoints(version, kept) ? { weightless: true } : {}),
  };
  return labelled(run, label);
}

/** A folder that claims to be a run and cannot say which: left out, it would look as if it were gone. */
const damagedRun = (dir: string): ListedRun => ({
  run: dir,
  id: basename(dir),
  name: basename(dir),
  createdAt: 0,
  state: 'interrupted',
  rollouts: 0,
  version: 0,
  evals: [],
  damaged: {
    kind: 'store.damaged',
    message: t('Its run.json cannot be understood.'),
    remedy: t('Restore it from a copy, or open the run with the version that made it.'),
  },
});

/** The label people gave a run, from the text of its file. */
export const parsedLabel = (json: string | undefined): RunLabel => runLabelOf(objectOf(json));

const over: readonly RunState[] = ['finished', 'stopped', 'failed', 'interrupted'];
/** A run that was under way when its file was written has no runtime any more: it was interrupted. */
const stateOf = (x: unknown): RunState => over.find((s) => s === x) ?? 'interrupted';

function evalOf(x: unknown): EvalPoint | undefined {
  if (!isObject(x)) return undefined;
  const [at, version, episodes, successes, low, high] = ['at', 'version', 'episodes', 'successes', 'low', 'high'].map(
    (k) => number(x[k]),
  );
  if (at === undefined || version === undefined || episodes === undefined || successes === undefined) return undefined;
  return {
    label: text(x['label']) ?? '',
    at,
    version,
    episodes,
    successes,
    errors: number(x['errors']) ?? 0,
    low: low ?? 0,
    high: high ?? 1,
    perFamily: {},
  };
}
const number = (x: unknown): number | undefined => (typeof x === 'number' && Number.isFinite(x) ? x : undefined);
const text = (x: unknown): string | undefined => (typeof x === 'string' && x !== '' ? x.slice(0, 200) : undefined);
function objectOf(json: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (json === undefined) return undefined;
  try {
    const x: unknown = JSON.parse(json);
    return isObject(x) ? x : undefined;
  } catch {
    return undefined;
  }
}
