import { MEASURED } from './measured.js';

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
  const size = sizeOf(model),
    found = shapes.find(([shape]) => sizeOf(shape) === size);
  if (size === undefined || !found) return undefined;
  const [shape, { seconds, tokens }] = found;
  return { seconds: seconds / (tokens * (1 + SCORED)), source: measuredWhere(shape) };
}
/** A pass that only scores, as a share of one that trains. */
export const SCORED = 0.5;
const sizeOf = (name: string): string | undefined => /(?:^|[^\d.])(\d+(?:\.\d+)?)b\b/i.exec(name)?.[1];

/** The cost of an update and an answer, for the page of run files. */
export function measuredRates(): string {
  const each = shapes.map(
    ([shape, { seconds, steps, decoded }]) =>
      `${shape}: an update of ${steps} steps takes ${seconds.toFixed(1)} s, so that one of 64 would take ${Math.round((64 / steps) * seconds)}, and it decodes ${Math.round(decoded)} tokens/s`,
  );
  return `Measured on one ${MEASURED.device} (${MEASURED.commit}, \`${MEASURED.source}\`), an adapter of rank ${MEASURED.rank}, the client's loss, ${MEASURED.rows} answers at once. ${each.join('. ')}. \`doctor --run\` goes by these, and says of all weights (rank 0) that they take longer than an adapter.`;
}
