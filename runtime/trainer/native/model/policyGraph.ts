import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HEADS, type EmbeddedPolicySpec } from '../../../domain/index.js';
import { Graph } from '../graph/graph.js';
import { GLYPH_SIZE, glyphForward, glyphParams, inputShapes, type GlyphSize } from './glyph.js';
import { layoutOf, unpack, type ParamLayout } from './params.js';

/** What the whole trainer needs to know about one policy: its spec, its size, its parameters. */
export interface PolicyModel {
  readonly spec: EmbeddedPolicySpec;
  readonly size: GlyphSize;
  readonly layout: ParamLayout;
}
export const policyModel = (spec: EmbeddedPolicySpec, size: GlyphSize = GLYPH_SIZE): PolicyModel => ({
  spec,
  size,
  layout: layoutOf(glyphParams(spec, size)),
});

/**
 * The forward graph. Inputs: theta f32[P] (unless `theta` is given, which makes it a constant), obs u8[b,h,w],
 * instruction i32[b,2n], history i32[b,4l+1]. Outputs: logits `type`, `cell`, `cell2`, `text`, `key`, f32[b, head
 * size].
 */
export function policyGraph(m: PolicyModel, batch = 1, theta?: Float32Array): Graph {
  const g = new Graph(),
    shape = inputShapes(m.spec, batch);
  const flat = theta ? g.floats(theta, [m.layout.total]) : g.input('theta', 'f32', [m.layout.total]);
  const logits = glyphForward(unpack(flat, m.layout), m.spec, m.size, {
    obs: g.input('obs', 'u8', shape.obs),
    instruction: g.input('instruction', 'i32', shape.instruction),
    history: g.input('history', 'i32', shape.history),
  });
  for (const h of HEADS) g.output(h, logits[h]);
  return g;
}

/** Writes the policy graph with theta as an input, for replicas that swap weights in place. Atomic. */
export async function writePolicyGraph(spec: EmbeddedPolicySpec, file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const m = policyModel(spec),
    tmp = `${file}.${process.pid}.tmp`;
  await writeFile(tmp, policyGraph(m).toModel('policy', { spec: spec.id, parameters: String(m.layout.total) }));
  await rename(tmp, file);
}
