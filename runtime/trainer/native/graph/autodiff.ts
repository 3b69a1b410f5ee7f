import { add } from './elementwise.js';
import { sizeOf, type Tensor } from './graph.js';

/**
 * Reverse-mode differentiation: appends to the graph the nodes that compute d loss / d wrt and returns them.
 * `loss` is a scalar. A tensor the loss does not depend on is an error: it would silently never learn.
 */
export function gradients(loss: Tensor, wrt: readonly Tensor[]): readonly Tensor[] {
  if (sizeOf(loss.shape) !== 1) throw new RangeError(`the loss must be one number, not [${loss.shape}]`);
  const g = loss.graph,
    tape = [...g.nodes];
  const depends = new Set<Tensor>(wrt);
  for (const n of tape) if (n.vjp && n.sources.some((s) => depends.has(s))) for (const o of n.outputs) depends.add(o);
  const grads = new Map<Tensor, Tensor>([[loss, g.floats([1], loss.shape)]]);
  for (const n of tape.reverse()) {
    if (!n.vjp || !n.outputs.some((o) => grads.has(o) && depends.has(o))) continue;
    const from = n.outputs.map((o) => grads.get(o) ?? g.floats(new Float32Array(sizeOf(o.shape)), o.shape));
    n.vjp(from).forEach((d, i) => {
      const source = n.sources[i]!;
      if (!d || !depends.has(source)) return;
      const before = grads.get(source);
      grads.set(source, before ? add(before, d) : d);
    });
  }
  return wrt.map((w) => {
    const d = grads.get(w);
    if (!d) throw new Error(`the loss does not depend on '${w.name}'`);
    return d;
  });
}
