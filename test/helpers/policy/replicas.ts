/**
 * Real replica processes for tests: a bundle with just their role, the policy graph and seeded weights in a temporary
 * folder.
 */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import type { ProcessEntry } from '../../../runtime/concurrency/process.js';
import { GLYPH_SPEC } from '../../../runtime/domain/index.js';
import type { WeightsRef } from '../../../runtime/policy/types.js';
import { initialTheta } from '../../../runtime/trainer/native/model/params.js';
import { policyModel, writePolicyGraph } from '../../../runtime/trainer/native/model/policyGraph.js';

export interface ReplicaKit {
  readonly entry: ProcessEntry;
  readonly graph: string;
  weights(version: number, o?: { seed?: number; scale?: number }): Promise<WeightsRef>;
  readonly dir: string;
  dispose(): Promise<void>;
}

export async function replicaKit(): Promise<ReplicaKit> {
  const dir = await mkdtemp(join(tmpdir(), 'replicas-'));
  // Beside node_modules, where ONNX Runtime is found; only this role, so that the test needs no other room.
  const file = resolve(`dist/test-replica-${process.pid}.mjs`);
  await build({
    stdin: {
      contents:
        "import { runReplicaProcess } from './runtime/policy/embedded/replicaProcess.ts'; if (process.argv[2] !== '__replica') throw new Error('no role'); await runReplicaProcess();",
      resolveDir: resolve('.'),
    },
    outfile: file,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    external: ['onnxruntime-node'],
    logLevel: 'warning',
  });
  const graph = join(dir, 'policy.onnx');
  await writePolicyGraph(GLYPH_SPEC, graph);
  const { layout } = policyModel(GLYPH_SPEC);
  return {
    entry: { file },
    graph,
    dir,
    async weights(version, o = {}) {
      const theta = initialTheta(layout, o.seed ?? version).map((x) => x * (o.scale ?? 1));
      const bytes = Buffer.from(theta.buffer, theta.byteOffset, theta.byteLength);
      const path = join(dir, `weights-${version}-${o.seed ?? version}.f32`);
      await writeFile(path, bytes);
      return { version, path, sha256: createHash('sha256').update(bytes).digest('hex') };
    },
    async dispose() {
      await rm(dir, { recursive: true, force: true });
      await rm(file, { force: true });
    },
  };
}
