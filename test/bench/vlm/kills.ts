import { mkdir, readFile, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import type { RunFile } from '../../../runtime/config/index.js';
import { checkpointOf } from '../../../runtime/data/events.js';
import { random } from '../../../runtime/domain/index.js';
import { weightsFolder } from '../../../runtime/trainer/engine/state.js';
import { weightsIn } from '../../../runtime/trainer/remote/savedState.js';
import { fakeModel, fakePython } from '../../helpers/engine/fakePython.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import { journalWhen, replay, type Replay } from '../../helpers/run/cli.js';
import { heldByCommand, heldByDaemon, type Holder, type Resumed } from './holders.js';

/** What kill -9 of runtime and engine at random moments left of runs with an engine of their own. */
export interface KillsResult {
  readonly kills: number;
  /** Of `train` in the foreground. */
  readonly runtime_kills: number;
  /** Of the daemon that windows share, which held the other run. */
  readonly daemon_kills: number;
  readonly engine_kills: number;
  /** Of these, while the daemon held the run. */
  readonly engine_kills_under_daemon: number;
  /** How runs went on after kills of the daemon: the next daemon did by itself, or was asked to. */
  readonly daemon_resumed: { readonly by_itself: number; readonly on_request: number };
  readonly engine: 'python' | 'reference';
  readonly batches: number;
  /** Batches whose training the journal has twice, and versions that two batches made. */
  readonly batches_twice: number;
  /** Versions missing from the journal, and rollouts left in a claim. */
  readonly batches_skipped: number;
  /** Optimizer steps in the weights that were saved last; one a batch. */
  readonly optimizer_steps: number;
  readonly seconds: number;
}
/** A kill comes so long after the runtime, or the engine, began its work: in ms, at most. */
const MOST_MS = 9000;
const WORDS = ["Action: click(start_box='(500,500)')", 'Action: wait()', "Action: finished(content='')"];

interface Trials {
  readonly kills: number;
  readonly seed: number;
  readonly dir: string;
  /** A tiny model and its image token; the reference server without. */
  readonly model?: { readonly folder: string; readonly imageToken: number } | undefined;
  readonly say: (text: string) => void;
}
/** Half of the kills meet a run that a daemon holds, as the extension's are held, the others one of the command line. */
export async function killAtRandom(o: Trials): Promise<KillsResult> {
  const began = Date.now(),
    dir = resolve(o.dir);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  const env = o.model ? {} : { ...(await fakePython(dir)).env, FAKE_ENGINE_WORDS: JSON.stringify(WORDS) },
    model = o.model ?? { folder: await fakeModel(join(dir, 'model')), imageToken: SPECIAL.imagePad },
    text = JSON.stringify(runFile(model)),
    under = shares(o.kills),
    parts: PartResult[] = [];
  if (under.daemon > 0) {
    const place = join(dir, 'daemon');
    await mkdir(place);
    parts.push(await killed(await heldByDaemon(place, text, env), { ...o, kills: under.daemon, part: 'daemon' }));
  }
  if (under.foreground > 0) {
    const place = join(dir, 'foreground');
    await mkdir(place);
    parts.push(await killed(await heldByCommand(place, text, env), { ...o, kills: under.foreground, part: 'runtime' }));
  }
  return {
    ...together(parts),
    engine: o.model ? 'python' : 'reference',
    seconds: Math.round((Date.now() - began) / 1000),
  };
}
/** The odd one is the daemon's. */
export const shares = (kills: number): { readonly daemon: number; readonly foreground: number } => ({
  daemon: Math.ceil(kills / 2),
  foreground: Math.floor(kills / 2),
});

/** One run's share of the kills. */
export interface PartResult extends Counted {
  readonly part: 'daemon' | 'runtime';
  /** Of whoever held the run. */
  readonly holder: number;
  readonly engine: number;
  readonly resumed: Readonly<Record<Resumed, number>>;
}
export function together(parts: readonly PartResult[]): Omit<KillsResult, 'engine' | 'seconds'> {
  const sum = (of: (p: PartResult) => number, part?: PartResult['part']): number =>
    parts.reduce((n, p) => n + (part === undefined || p.part === part ? of(p) : 0), 0);
  return {
    kills: sum((p) => p.holder + p.engine),
    runtime_kills: sum((p) => p.holder, 'runtime'),
    daemon_kills: sum((p) => p.holder, 'daemon'),
    engine_kills: sum((p) => p.engine),
    engine_kills_under_daemon: sum((p) => p.engine, 'daemon'),
    daemon_resumed: {
      by_itself: sum((p) => p.resumed.itself, 'daemon'),
      on_request: sum((p) => p.resumed.request, 'daemon'),
    },
    batches: sum((p) => p.batches),
    batches_twice: sum((p) => p.batches_twice),
    batches_skipped: sum((p) => p.batches_skipped),
    optimizer_steps: sum((p) => p.optimizer_steps),
  };
}

async function killed(first: Holder, o: Trials & Pick<PartResult, 'part'>): Promise<PartResult> {
  const { part, kills } = o,
    rng = random(`kills/${o.seed}/${part}`),
    done = { holder: 0, engine: 0, resumed: { itself: 0, request: 0 } };
  let holder = first;
  const { run } = first;
  for (let k = 0; k < kills; k++) {
    await progressed(holder);
    await after(rng.int(MOST_MS));
    // The first is the holder's: a short trial, too, has one of each.
    const engine = k > 0 && rng.next() < 0.5 ? await engineOf(run) : undefined;
    if (engine === undefined) {
      await holder.kill();
      while ((await engineOf(run)) !== undefined) await after(20);
      const next = await holder.goOn();
      holder = next.holder;
      done.resumed[next.resumed]++;
      done.holder++;
    } else {
      process.kill(engine, 'SIGKILL');
      done.engine++;
    }
    o.say(`${k + 1} of ${kills}: ${engine === undefined ? part : `engine under ${part}`} killed`);
  }
  await progressed(holder);
  await holder.stop();
  return { part, ...done, ...(await counted(run)) };
}

const runFile = (model: { readonly folder: string; readonly imageToken: number }): RunFile => ({
  name: 'kills',
  seed: 3,
  tasks: { families: ['press-button', 'term-touch'] },
  desktops: { count: 2, provider: 'local' },
  policy: {
    kind: 'vlm',
    vlm: {
      model: model.folder,
      coordinates: 'relative1000',
      imageToken: model.imageToken,
      maxTokens: 8,
      images: 2,
      prompt: 'Task: {instruction}',
    },
  },
  rollout: { maxSteps: 2 },
  // A success from the pool joins groups that failed, so that a policy that knows nothing has something to train.
  curation: { dynamicRollouts: { max: 2 }, pool: { reuseCap: 0 } },
  trainer: { remote: { engine: 'auto', rank: 4 }, batchGroups: 1, epochs: 1, lr: 0.01, replay: 0, minibatchStates: 0 },
  warmStart: { demonstrations: 2, steps: 0 },
  evaluation: { episodes: 0, everyMinutes: 0 },
});

const batchesOf = (r: Replay): number => r.of('batch.trained').length;
/** A batch more than there was: otherwise kills would only ever meet a run that starts. */
async function progressed({ run, writer }: Holder): Promise<void> {
  // By then there is a journal.
  await writer.hear((l) => l['type'] === 'status');
  const first = batchesOf(await replay(run));
  await journalWhen(run, writer, (r) => batchesOf(r) > first);
}

/** The process that holds the run's engine folder. */
async function engineOf(run: string): Promise<number | undefined> {
  for (const pid of await readdir('/proc'))
    if (/^\d+$/.test(pid)) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (line.includes(`--state=${join(run, 'engine')}`)) return Number(pid);
    }
  return undefined;
}

type Counted = Pick<KillsResult, 'batches' | 'batches_twice' | 'batches_skipped' | 'optimizer_steps'>;
async function counted(run: string): Promise<Counted> {
  const r = await replay(run),
    trained = r.of('batch.trained'),
    versions = trained.map((e) => e.version),
    last = checkpointOf(trained.at(-1)!)!;
  const twice = versions.length - new Set(versions).size + trained.length - new Set(trained.map((e) => e.batch)).size,
    skipped = Math.max(...versions) - new Set(versions).size + r.counts.byState.claimed;
  const [uri] = await weightsIn(join(run, 'checkpoints', last.dir.split('/').at(-1)!));
  return {
    batches: trained.length,
    batches_twice: twice,
    batches_skipped: skipped,
    optimizer_steps: await stepsOf(weightsFolder(join(run, 'engine'), uri!)!),
  };
}
async function stepsOf(weights: string): Promise<number> {
  const { step } = JSON.parse(await readFile(join(weights, 'engine.json'), 'utf8')) as { step?: number };
  if (step !== undefined) return step;
  const { saved } = deserialize(await readFile(join(weights, 'weights.v8'))) as {
    saved: { state: { steps: number } };
  };
  return saved.state.steps;
}
