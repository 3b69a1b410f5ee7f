import type { TrainBatch } from '../domain/index.js';

/** Linear warm-up over the first tenth (at most 50 steps), then a cosine down to 5 %. */
export function imitationRate(lr: number, step: number, steps: number): number {
  const warm = Math.max(1, Math.min(50, Math.floor(steps / 10)));
  if (step < warm) return (lr * (step + 1)) / warm;
  const x = (step - warm) / Math.max(1, steps - warm);
  return lr * (0.05 + 0.95 * 0.5 * (1 + Math.cos(Math.PI * x)));
}
/** A lesson reports the losses of this last share of its steps: what it reached, not the way there. */
export const REPORTED_SHARE = 1 / 10;
/** Optimizer steps whose losses are reported. */
export const reportedSteps = (steps: number): number => Math.max(1, Math.ceil(steps * REPORTED_SHARE));

/** `n` things in parts of at most `size`, sizes unlike by at most one, so that none is left over; 0 = one part. */
export function equalParts<T>(items: readonly T[], size: number): T[][] {
  const n = items.length,
    parts = size > 0 ? Math.max(1, Math.ceil(n / size)) : 1;
  return Array.from({ length: parts }, (_, i) =>
    items.slice(Math.floor((i * n) / parts), Math.floor(((i + 1) * n) / parts)),
  );
}

/** A part of a batch that one optimizer step is made on. */
export interface Minibatch<T> {
  readonly items: readonly T[];
  /** Optimizer steps of all passes that are known to be made. */
  readonly planned: number;
}
/**
 * The minibatches of an update, of at most `size` items (0 = all), pass after pass. Whether there is another pass is asked
 * when the one before is done: beyond `epochs` it pays while `ess`, measured in the last pass, is still high enough.
 */
export function* minibatches<T>(
  items: readonly T[],
  b: Pick<TrainBatch<never>, 'epochs' | 'reuse'>,
  o: { readonly size: number; readonly shuffled: (pass: number) => readonly T[]; readonly ess: () => number },
): Generator<Minibatch<T>> {
  const perPass = equalParts(items, o.size).length,
    again = (pass: number): boolean =>
      pass < b.epochs || (b.reuse !== undefined && pass < b.reuse.epochs && o.ess() >= b.reuse.ess);
  for (let pass = 0; items.length > 0 && again(pass); pass++) {
    const order = perPass === 1 ? items : o.shuffled(pass),
      planned = Math.max(b.epochs, pass + 1) * perPass;
    for (const part of equalParts(order, o.size)) yield { items: part, planned };
  }
}
