import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
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
import { folderOf, journalWhen, replay, startWith, type Command, type Replay } from '../../helpers/run/cli.js';

/** What kill -9 of runtime and engine at random moments left of a run with an engine of its own. */
export interface KillsResult {
  readonly kills: number;
  readonly runtime_kills: number;
  readonly engine_kills: number;
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

export async function killAtRandom(o: {
  readonly kills: number;
  readonly seed: number;
  readonly dir: string;
  /** A tiny model and its image token; the reference server without. */
  readonly model?: { readonly folder: string; readonly imageToken: number } | undefined;
  readonly say: (text: string) => void;
}): Promise<KillsResult> {
  const began = Date.now(),
    dir = resolve(o.dir);
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true });
  const env = o.model ? {} : { ...(await fakePython(dir)).env, FAKE_ENGINE_WORDS: JSON.stringify(WORDS) },
    model = o.model ?? { folder: await fakeModel(join(dir, 'model')), imageToken: SPECIAL.imagePad },
    file = join(dir, 'run.json');
  await writeFile(file, JSON.stringify(runFile(model)));
  const rng = random(`kills/${o.seed}`),
    done = { runtime: 0, engine: 0 };
  let command = startWith(env, 'train', file, '--json', '--runs', join(dir, 'runs'));
  const run = await folderOf(command),
    goOn = (): Command => startWith(env, 'train', '--resume', run, '--json', '--runs', join(dir, 'runs'));
  for (let k = 0; k < o.kills; k++) {
    await progressed(run, command);
    await after(rng.int(MOST_MS));
    const engine = rng.next() < 0.5 ? await engineOf(run) : undefined;
    if (engine === undefined) {
      command.signal('SIGKILL', true);
      await command.ended;
      while ((await engineOf(run)) !== undefined) await after(20);
      command = goOn();
      done.runtime++;
    } else {
      process.kill(engine, 'SIGKILL');
      done.engine++;
    }
    o.say(`${k + 1} of ${o.kills}: ${engine === undefined ? 'runtime' : 'engine'} killed`);
  }
  await progressed(run, command);
  command.signal('SIGINT', false);
  const { code, stderr } = await command.ended;
  if (code !== 130) throw new Error(`the run did not end in order (${code}):\n${stderr}`);
  return {
    kills: o.kills,
    runtime_kills: done.runtime,
    engine_kills: done.engine,
    engine: o.model ? 'python' : 'reference',
    ...(await counted(run)),
    seconds: Math.round((Date.now() - began) / 1000),
  };
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
async function progressed(run: string, command: Command): Promise<void> {
  // By then there is a journal.
  await command.hear((l) => l['type'] === 'status');
  const first = batchesOf(await replay(run));
  await journalWhen(run, command, (r) => batchesOf(r) > first);
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

async function counted(
  run: string,
): Promise<Pick<KillsResult, 'batches' | 'batches_twice' | 'batches_skipped' | 'optimizer_steps'>> {
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
