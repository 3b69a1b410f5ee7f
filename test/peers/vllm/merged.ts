import { join } from 'node:path';
import {
  answeredBy,
  askAll,
  distance,
  exportModel,
  loadAdapter,
  unloadAdapter,
  type Distance,
  type Told,
} from './again.js';
import type { VllmServer } from './servers.js';
import type { Asked, Wire } from './wire.js';

/** Trained weights as `export-model` writes them: the adapter, and a whole model with the adapter merged into it. */

export interface MergedFigures {
  readonly answers: number;
  /** Tokens that the merged model and the adapter both said. */
  readonly tokens: number;
  /** Answers that went on with another token somewhere: seeded draws near a tie. */
  readonly unlike_answers: number;
  readonly most: number;
  readonly mean: number;
  /** How far the adapter of the first version is from this one, which a model that was merged wrongly would be, too. */
  readonly other_version: number;
  /** Answers in which it says another token somewhere. */
  readonly unlike_other_version: number;
}
/**
 * What a merged model's log-probs may be from those of the adapter: the goal for an adapter against the trainer (3e-5)
 * and what merging may cost in the engine itself (2e-5, test/engine/test_merge.py).
 */
export const MERGED_APART = 5e-5;
const ANSWERS = 64;

export interface Exported {
  readonly run: string;
  readonly work: string;
  readonly first: number;
  readonly newest: number;
  readonly wires: readonly Wire[];
  readonly signal: AbortSignal;
}
export interface AdapterAnswers {
  readonly asked: readonly Asked[];
  readonly told: readonly Told[];
  readonly otherVersion: Distance;
}

/** Answers by exported adapters, each alone on a server that acted. */
export async function adapterAnswers(server: string, o: Exported): Promise<AdapterAnswers> {
  const { run, work, wires, signal } = o,
    asked = answeredBy(wires, o.newest)
      .slice(0, ANSWERS)
      .map((e) => e.asked);
  const toldBy = async (version: number): Promise<Told[]> => {
    const folder = join(work, `adapter-${version}`),
      name = `exported@v${version}`;
    await exportModel(run, version, folder, false, signal);
    await loadAdapter(server, name, folder, signal);
    const told = await askAll(server, asked, name, signal);
    await unloadAdapter(server, name, signal);
    return told;
  };
  const told = await toldBy(o.newest);
  return { asked, told, otherVersion: distance(told, await toldBy(o.first)) };
}

/** The same answers by the merged model on a server of its own, which `start` starts. */
export async function mergedStage(
  by: AdapterAnswers,
  o: Exported,
  start: (model: string) => Promise<VllmServer>,
): Promise<MergedFigures> {
  const model = join(o.work, 'merged');
  await exportModel(o.run, o.newest, model, true, o.signal);
  const server = await start(model),
    told = await askAll(server.url, by.asked, model, o.signal),
    { tokens, unlike, most, mean } = distance(by.told, told);
  await server.stop();
  return {
    answers: told.length,
    tokens,
    unlike_answers: unlike,
    most,
    mean,
    other_version: by.otherVersion.most,
    unlike_other_version: by.otherVersion.unlike,
  };
}
