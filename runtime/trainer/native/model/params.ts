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

/** Seeded initial theta; each array has its own generator, so that adding one does not change the others. */
export function initialTheta(layout: ParamLayout, seed: number): Float32Array {
  const theta = new Float32Array(layout.total);
  let at = 0;
  for (const d of layout.defs) {
    const n = sizeOf(d.shape);
    if ('fill' in d.init) theta.fill(d.init.fill, at, at + n);
    else if ('values' in d.init) theta.set(d.init.values, at);
    else {
      const rng = random(`${seed}/${d.name}`);
      for (let i = 0; i < n; i++) theta[at + i] = d.init.std * rng.normal();
    }
    at += n;
  }
  return theta;
}

/** 1 where weight decay applies: matrices and kernels, not gains, offsets and embeddings of position. */
export function decayMask(layout: ParamLayout): Float32Array {
  const mask = new Float32Array(layout.total);
  let at = 0;
  for (const d of layout.defs) {
    const n = sizeOf(d.shape);
    if (d.shape.length > 1 && 'std' in d.init && !d.name.startsWith('pos.')) mask.fill(1, at, at + n);
    at += n;
  }
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
