import { MEASURED } from './measured.js';
import type { RunConfig } from './schema.js';

const shapes = Object.entries(MEASURED.shapes),
  all = shapes.map(([, s]) => s);
const range = (of: (s: (typeof all)[number]) => number, digits = 0): string =>
  [Math.min(...all.map(of)), Math.max(...all.map(of))].map((x) => x.toFixed(digits)).join(' to ');

/** The source of these figures, for people. */
export const measuredWhere = (shape: string): string =>
  `measured: ${MEASURED.device}, the shape of ${shape}, an adapter of rank ${MEASURED.rank}, ${MEASURED.commit}; ${MEASURED.source} of the repository`;
/** Tokens/s that the engine decodes, in words for the presets. */
export const DECODES = `decodes ${range((s) => s.decoded)} tokens/s at ${MEASURED.rows} answers at once (measured, 7 to 8 B on one ${MEASURED.device})`;
/** Memory at the peak of training, in words for the presets. */
export const PEAK = `${range((s) => s.gib, 1)} GiB at the peak of training (measured, 7 to 8 B on one ${MEASURED.device})`;
/** The same, in the shape of UI-TARS-1.5-7B. */
export const DECODES_7B = `${Math.round(MEASURED.shapes['Qwen2.5-VL-7B'].decoded)} tokens/s`;

/** Seconds of one token's pass that trains, and where they were measured; undefined for a model of another size. */
export function trainingRate(model: string): { readonly seconds: number; readonly source: string } | undefined {
  const found = shapeOf(model);
  if (!found) return undefined;
  const [shape, { seconds, tokens }] = found;
  return { seconds: seconds / (tokens * (1 + SCORED)), source: measuredWhere(shape) };
}
/** Tokens of answers a second when the engine samples, prompts included, and of how many tokens these answers were. */
export function samplingRate(
  model: string,
): { readonly tokens: number; readonly answer: number; readonly source: string } | undefined {
  const found = shapeOf(model);
  return found && { tokens: found[1].sampled, answer: MEASURED.answer, source: measuredWhere(found[0]) };
}

/** What training holds on one GPU at its peak. `atLeast`: activations are not counted, and what is was not measured. */
export interface TrainingMemory {
  readonly gib: number;
  readonly atLeast: boolean;
  readonly source: string;
}
/**
 * Undefined where neither the model was measured nor its name tells its size. Of each parameter, where all are trained,
 * the engine holds: the base's, the trained one's, the frozen one's that acts and the reference's of the KL term; AdamW's
 * two moments in float32 and, of weights of 16 bits, a copy; the gradient of a request and the sum of all in float32, and
 * that of the backward pass.
 */
export function trainingMemory({ policy, trainer }: RunConfig): TrainingMemory | undefined {
  const { vlm } = policy,
    { remote, klBeta } = trainer,
    found = vlm && shapeOf(vlm.model);
  if (!vlm || !remote) return undefined;
  if (remote.rank > 0) return found && { gib: found[1].gib, atLeast: false, source: measuredWhere(found[0]) };
  const parameters = found?.[1].parameters ?? 1e9 * Number(sizeOf(vlm.model) ?? NaN);
  if (Number.isNaN(parameters)) return undefined;
  const single = remote.options?.dtype === 'float32',
    weight = single ? SINGLE : HALF,
    copies = 3 + (klBeta > 0 ? 1 : 0),
    bytes = copies * weight + (single ? 2 : 3) * SINGLE + 2 * SINGLE + weight;
  return {
    gib: Math.round((parameters * bytes) / 2 ** 30),
    atLeast: true,
    source: `calculated: ${(parameters / 1e9).toFixed(1)} B parameters of ${bytes} bytes`,
  };
}
/** Bytes of a number. */
const HALF = 2,
  SINGLE = 4;
/** A pass that only scores, as a share of one that trains. */
export const SCORED = 0.5;
const shapeOf = (model: string): (typeof shapes)[number] | undefined => {
  const size = sizeOf(model);
  return size === undefined ? undefined : shapes.find(([shape]) => sizeOf(shape) === size);
};
const sizeOf = (name: string): string | undefined => /(?:^|[^\d.])(\d+(?:\.\d+)?)b\b/i.exec(name)?.[1];

/** The cost of an update and an answer, for the page of run files. */
export function measuredRates(): string {
  const each = shapes.map(
    ([shape, { seconds, steps, decoded }]) =>
      `${shape}: an update of ${steps} steps takes ${seconds.toFixed(1)} s, so that one of 64 would take ${Math.round((64 / steps) * seconds)}, and it decodes ${Math.round(decoded)} tokens/s`,
  );
  return `Measured on one ${MEASURED.device} (${MEASURED.commit}, \`${MEASURED.source}\`), an adapter of rank ${MEASURED.rank}, the client's loss, ${MEASURED.rows} answers at once. ${each.join('. ')}. \`doctor --run\` goes by these, and says of all weights (rank 0) that they take longer than an adapter.`;
}
