import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { parseRunText, parseStoredConfig, traitsOf, type RunConfig } from '../config/index.js';
import { PngFrameStore } from '../data/store/frames.js';
import { readMeta, runPaths } from '../data/store/runStore.js';
import { errorCode, messageOf, type RunPath, type Trajectory, checkpointName } from '../domain/index.js';
import { ignoreFailure, orUndefined } from '../concurrency/failures.js';
import { readForeignText } from '../files/foreignFile.js';
import { segmentOptions, type SessionHost } from '../human/controlSession.js';
import type { Annotate } from '../human/demonstration.js';
import type { KeepingDeps } from '../human/keeping.js';
import type { RunWriter } from '../human/runWriter.js';
import { TryRollout } from '../human/tryRollout.js';
import { TrySession } from '../human/trySession.js';
import type { TryParams, TryPolicy } from '../protocol/try.js';
import { backendOf } from '../run/backends/index.js';
import { listRunFolders } from '../run/runFolders.js';
import { actorFor, prepareTry, type TryHost, type Trying } from './tryPolicy.js';
import { tryExtra } from './tryViews.js';
import type { Studio } from './studio.js';

/** The collection of what was tried and kept, beside the runs. */
export const TRIES = 'tries';
/** Runs that are offered, newest first. */
const MOST_RUNS = 200;
const MOST_RUN_FILE = 1 << 20;

const scratchOf = (s: Studio): string => join(s.cacheDir, 'try');
/** Removes the files of tries that a killed daemon left. */
export async function clearTries(s: Studio): Promise<void> {
  await rm(scratchOf(s), { recursive: true, force: true }).catch((e: unknown) => {
    s.log('warn', `What was left of tries could not be removed: ${messageOf(e)}`);
  });
}
const hostOf = (s: Studio): TryHost => ({
  entry: s.entry,
  own: s.own,
  read: (run, f) => s.read(run, (r) => f(r.reader)),
});

/** A session with everything started, not begun yet. */
export async function openTry(
  s: Studio,
  host: SessionHost,
  p: TryParams,
  o: { readonly signal: AbortSignal; readonly annotate: Annotate },
): Promise<TrySession> {
  const name = randomBytes(6).toString('hex'),
    dir = join(scratchOf(s), name),
    frames = runPaths(dir).frames,
    run = resolve(p.base, TRIES),
    gone = (): void => {
      ignoreFailure(rm(dir, { recursive: true, force: true }), 'the next daemon removes it');
    };
  await mkdir(frames, { recursive: true });
  let trying: Trying;
  try {
    trying = await prepareTry(hostOf(s), {
      ...p,
      actor: actorFor(hostOf(s), p.policy),
      run,
      name,
      dir,
      frames,
      signal: o.signal,
    });
  } catch (e) {
    gone();
    throw e;
  }
  return sessionOf(s, host, trying, { p, run, frames, gone, annotate: o.annotate });
}

interface Surroundings {
  readonly p: TryParams;
  readonly run: RunPath;
  readonly frames: string;
  readonly gone: () => void;
  readonly annotate: Annotate;
}
function sessionOf(
  s: Studio,
  host: SessionHost,
  t: Trying,
  { p, run, frames, gone, annotate }: Surroundings,
): TrySession {
  const { own, actor } = t,
    { desktop, registry } = own,
    { order, task } = t.rollout.request,
    version = actor.checkpoint?.version;
  registry.begin(desktop.id, {
    rollout: order.rollout,
    task: task.id,
    instruction: task.instruction,
    cap: order.cap,
    version: version ?? 0,
    since: host.clock.now(),
  });
  const rollout = new TryRollout({
    ...t.rollout,
    onPhase: (phase) => {
      registry.phase(desktop.id, phase === 'perform' ? 'act' : phase);
      if (phase !== 'setup') asksNow();
    },
  });
  const asksNow = (): void => {
    const instruction = t.rollout.episode.tasks.instruction?.(task, desktop);
    if (instruction === undefined) return;
    session.asks(instruction);
    registry.asks(desktop.id, instruction);
  };
  const session = new TrySession(
    host,
    {
      run,
      desktop: desktop.id,
      screen: desktop.screen,
      family: task.family,
      task: task.id,
      seed: t.seed,
      instruction: task.instruction,
    },
    rollout,
    {
      trial: {
        policy: actor.name,
        ...(version === undefined ? {} : { version }),
        image: t.image,
        frames,
        verified: t.verified,
        heldOut: t.heldOut,
        cap: order.cap,
        notes: t.notes,
      },
      segment: segmentOptions(actor.config.policy.kind),
      mode: p.mode,
      keeping: keepingIn(s, { base: p.base, frames, rollout, annotate }),
      onSteps: (made) => {
        registry.progress(desktop.id, made);
      },
      close: () => t.close(),
      forget: gone,
    },
  );
  return session;
}

/** Into the collection, which is made when the first one is kept. */
function keepingIn(
  s: Studio,
  o: {
    readonly base: string;
    readonly frames: string;
    readonly rollout: TryRollout;
    readonly annotate: Annotate;
  },
): KeepingDeps {
  const writing = async <T>(f: (w: RunWriter) => Promise<T>): Promise<T> => {
    const w = await s.writers.openCollection(o.base, TRIES);
    try {
      return await f(w);
    } finally {
      await w.close();
    }
  };
  return {
    keep: (t, pool) =>
      writing(async (w) => {
        await copyFrames(new PngFrameStore(o.frames), w.frames, t);
        return w.record(t, pool, o.rollout.said().map(tryExtra));
      }),
    pool: (rollout, wish) => writing((w) => w.pool(rollout, wish)),
    unpool: (rollout, reason) => writing((w) => w.unpool([rollout], reason)),
    annotate: (rollout, a) => o.annotate(resolve(o.base, TRIES), rollout, a),
  };
}
async function copyFrames(from: PngFrameStore, to: RunWriter['frames'], t: Trajectory): Promise<void> {
  const refs = new Map([...t.steps.map((x) => x.frame), ...(t.last ? [t.last] : [])].map((f) => [f.hash, f]));
  for (const ref of refs.values()) await to.copyIn(ref, from);
}

/** Policies of the runs under these folders that have one to try, newest first, and models that run files name. */
export async function policiesToTry(roots: readonly string[], files: readonly string[]): Promise<TryPolicy[]> {
  const dirs = (await Promise.all(roots.map((r) => listRunFolders(resolve(r))))).flat().slice(0, MOST_RUNS),
    runs = await Promise.all(
      dirs.map((d) => orUndefined(policyOfRun(resolve(d)), 'a run that cannot be read is not offered')),
    ),
    models = await Promise.all(
      files.map((f) => orUndefined(policyOfFile(resolve(f)), 'a run file with mistakes is not offered')),
    );
  return [...runs, ...models].filter((x) => x !== undefined);
}
const modelOf = (c: RunConfig): string | undefined => backendOf(c.policy.kind).model?.(c);

async function policyOfRun(run: RunPath): Promise<TryPolicy | undefined> {
  const meta = await readMeta(run),
    config = parseStoredConfig(meta.config ?? {}),
    { kind } = config.policy,
    model = modelOf(config),
    versions = (await checkpointNames(run)).map((n) => Number(n.slice(1))).sort((a, b) => b - a);
  if (traitsOf(kind).trained && versions.length === 0) return undefined;
  return { run, name: meta.name ?? basename(run), kind, ...(model === undefined ? {} : { model }), versions };
}
const checkpointNames = async (run: RunPath): Promise<string[]> =>
  (
    await readdir(runPaths(run).checkpoints).catch((e: unknown): string[] => {
      if (errorCode(e) === 'ENOENT') return [];
      throw e;
    })
  ).filter((n) => checkpointName.test(n));

async function policyOfFile(file: string): Promise<TryPolicy | undefined> {
  const config = parseRunText(await readForeignText(file, MOST_RUN_FILE), file),
    model = modelOf(config),
    { kind } = config.policy;
  return model === undefined ? undefined : { file, name: config.name, kind, model };
}
