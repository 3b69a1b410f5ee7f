import { random } from '../../../domain/random.js';
import { reshape } from '../graph/elementwise.js';
import { sizeOf, type Tensor } from '../graph/graph.js';
import { split } from '../graph/structure.js';

/** One trainable array inside the flat vector theta. */
export interface ParamDef {
  readonly name: string;
  readonly shape: readonly number[];
  /** Initial values: all equal, each its own, or normal with this standard deviation. */
  readonly init: { readonly fill: number } | { readonly values: readonly number[] } | { readonly std: number };
}
export interface ParamLayout {
  readonly defs: readonly ParamDef[];
  readonly total: number;
}

export const layoutOf = (defs: readonly ParamDef[]): ParamLayout => ({
  defs,
  total: defs.reduce((n, d) => n + sizeOf(d.shape), 0),
});

/** An array and where it is in theta: from index `from` up to `to`, which is no more of it. */
export interface PlacedParam extends ParamDef {
  readonly from: number;
  readonly to: number;
}
/** The arrays with their places, in the order of theta. */
export function placedParams({ defs }: ParamLayout): PlacedParam[] {
  let from = 0;
  return defs.map((d) => {
    const to = from + sizeOf(d.shape),
      placed = { ...d, from, to };
    from = to;
    return placed;
  });
}

/** Seeded initial theta; each array has its own generator, so that adding one does not change the others. */
export function initialTheta(layout: ParamLayout, seed: number): Float32Array {
  const theta = new Float32Array(layout.total);
  for (const { name, init, from, to } of placedParams(layout)) {
    if ('fill' in init) theta.fill(init.fill, from, to);
    else if ('values' in init) theta.set(init.values, from);
    else {
      const rng = random(`${seed}/${name}`);
      for (let i = from; i < to; i++) theta[i] = init.std * rng.normal();
    }
  }
  return theta;
}

/** 1 where weight decay applies: matrices and kernels, not gains, offsets and embeddings of position. */
export function decayMask(layout: ParamLayout): Float32Array {
  const mask = new Float32Array(layout.total);
  for (const { name, shape, init, from, to } of placedParams(layout))
    if (shape.length > 1 && 'std' in init && !name.startsWith('pos.')) mask.fill(1, from, to);
  return mask;
}

/** The arrays of theta as tensors, by name. */
export function unpack(theta: Tensor, layout: ParamLayout): (name: string) => Tensor {
  const parts = split(
    theta,
    layout.defs.map((d) => sizeOf(d.shape)),
    0,
  );
  const byName = new Map(layout.defs.map((d, i) => [d.name, reshape(parts[i]!, d.shape)]));
  return (name) => {
    const t = byName.get(name);
    if (!t) throw new RangeError(`no parameter '${name}'`);
    return t;
  };
}
