import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { RunConfig } from '../../config/index.js';
import { startsEngine } from '../../config/index.js';
import { StudioError } from '../../domain/index.js';
import { EngineKeeper } from '../../trainer/engine/keeper.js';
import { startEngineServer } from '../../trainer/engine/server.js';
import { adoptWeights, checkPlain } from '../../trainer/engine/state.js';
import { weightsIn } from '../../trainer/remote/savedState.js';
import type { StartedParts } from './startedParts.js';
import type { BackendRequest } from './types.js';

/**
 * The engine of a run that names none (`trainer.remote.engine: auto`): the runtime's own program, in an environment of
 * its own, on this machine's loopback address with a key of its own. The run file says which model, and numbers; no
 * program, and no code of a model folder, runs because of it.
 */

/**
 * Folder of the engine's checkpoints and adapters. It is in the run folder, so that a run that is resumed, copied or
 * archived has them.
 */
export const engineState = (runDir: string): string => join(runDir, 'engine');

type Config = Pick<RunConfig, 'policy' | 'trainer'>;

/** A name on the Hugging Face hub. */
const HUB_NAME = /^[A-Za-z0-9][\w.-]{0,95}(\/[A-Za-z0-9][\w.-]{0,95})?$/;

/** The run file with a model folder as an absolute path; a relative one is looked up in each of `dirs`. */
export function locateModel<C extends RunConfig>(c: C, dirs: readonly string[]): C {
  const { vlm } = c.policy;
  if (!startsEngine(c) || !vlm || isAbsolute(vlm.model)) return c;
  const found = dirs.map((d) => resolve(d, vlm.model)).find(isModel);
  return found === undefined ? c : { ...c, policy: { ...c.policy, vlm: { ...vlm, model: found } } };
}
const isModel = (dir: string): boolean => existsSync(join(dir, 'config.json'));

/** Starts it, and keeps it until the parts are closed. Rejects with `engine.unavailable` or `config.invalid`. */
export async function startOwnEngine(r: BackendRequest, parts: StartedParts): Promise<EngineKeeper> {
  const { model } = r.config.policy.vlm!,
    state = engineState(r.dir),
    options = engineOptions(r.config);
  checkModel(model);
  if (r.config.trainer.remote!.engine === undefined)
    r.onNote?.('No engine is named (trainer.remote.url), so the single-GPU engine is started here with the run.');
  await checkPlain(r.dir, state);
  if (r.checkpoint) await bringWeights(r.checkpoint.dir, state);
  const keeper = await EngineKeeper.start(
    {
      launch: ({ port, key, signal }) =>
        startEngineServer({
          model,
          state,
          options: [...options, `--port=${port}`],
          key,
          own: true,
          signal,
          onLine: (line) => r.onStarting?.(shortened(line)),
        }),
      onNote: (text) => r.onNote?.(text),
      onGivenUp: (e) => r.onFault?.(e),
    },
    r.signal,
  ).finally(() => r.onStarting?.(undefined));
  parts.add(() => keeper.close());
  r.onNote?.(`The engine answers on ${keeper.device} and ends with the run.`);
  return keeper;
}
const shortened = (line: string): string => `engine: ${line.length > 120 ? `${line.slice(0, 119)}…` : line}`;

function checkModel(model: string): void {
  if (isAbsolute(model) ? isModel(model) : HUB_NAME.test(model)) return;
  throw new StudioError(
    'config.invalid',
    `policy.vlm.model: ${model} is no folder of a model (one with config.json), and no name on the Hugging Face hub.`,
    'Give the folder as an absolute path or relative to the run file, or a name such as Qwen/Qwen3-VL-8B-Instruct.',
  );
}

/** The run file's options for the engine, as arguments of its program. */
function engineOptions({ policy, trainer }: Config): string[] {
  const { rank, options: o } = trainer.remote!,
    { images } = policy.vlm!;
  const all: Readonly<Record<string, string | number | undefined>> = {
    device: o?.device,
    dtype: o?.dtype,
    'micro-batch-tokens': o?.microBatchTokens,
    'min-pixels': o?.minPixels,
    'max-pixels': o?.maxPixels,
    'max-context': o?.maxContext,
    'max-images': images,
    lora: rank,
  };
  return Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

/** A checkpoint of another run, or of the one that is evaluated, says where its engine had the weights: they come along. */
async function bringWeights(checkpoint: string, state: string): Promise<void> {
  const from = engineState(dirname(dirname(checkpoint)));
  if (resolve(from) === resolve(state) || !existsSync(from)) return;
  for (const uri of await weightsIn(checkpoint)) await adoptWeights(from, state, uri);
}
