import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError } from '../../domain/index.js';
import { replaceFile } from '../../files/replaceFile.js';
import { readCheckpoint, sha256, writeCheckpoint } from '../checkpoint.js';
import type { CheckpointRef, WeightsFile } from '../types.js';
import type { LearnerState } from './learner.js';
import { policyGraph, towerGraph, type PolicyModel } from './model/policyGraph.js';

/**
 * A learner's state on disk: weights.f32, adam_m.f32, adam_v.f32, reference.f32 (little-endian f32, the flat layout)
 * and policy.onnx; of a policy that spells reader.onnx too, which sees what policy.onnx decides on.
 */

const ARRAYS = { 'weights.f32': 'theta', 'adam_m.f32': 'm', 'adam_v.f32': 'v', 'reference.f32': 'reference' } as const;
/** Older exports are kept for replicas still reading them. */
const KEEP_EXPORTS = 3;

const bytesOf = (a: Float32Array): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
const floatsOf = (b: Buffer): Float32Array => {
  const a = new Float32Array(b.byteLength / 4);
  bytesOf(a).set(b);
  return a;
};
const label = (version: number): string => `v${String(version).padStart(6, '0')}`;
/** Names, order and shapes of all parameters, as one short string. */
export const layoutDigest = (m: PolicyModel): string =>
  sha256(Buffer.from(JSON.stringify(m.layout.defs.map((d) => [d.name, d.shape])))).slice(0, 16);

export async function saveCheckpoint(root: string, m: PolicyModel, s: LearnerState): Promise<CheckpointRef> {
  const dir = join(root, label(s.version));
  const files: Record<string, Uint8Array> = Object.fromEntries(
    Object.entries(ARRAYS).map(([file, key]) => [file, bytesOf(s[key])]),
  );
  const about = { spec: JSON.stringify(m.spec), version: String(s.version) };
  files['policy.onnx'] = policyGraph(m, 1, s.theta).toModel('policy', about);
  if (m.reader) files['reader.onnx'] = towerGraph(m, 1, s.theta).toModel('reader', about);
  await writeCheckpoint(
    dir,
    {
      policy: m.spec.id,
      layout: layoutDigest(m),
      values: {
        version: s.version,
        adamSteps: s.adamSteps,
        readerSteps: s.readerSteps,
        updateSteps: s.updateSteps,
        rng: s.rng,
        spec: m.spec,
      },
    },
    files,
  );
  return { version: s.version, dir };
}

export async function loadCheckpoint(dir: string, m: PolicyModel): Promise<LearnerState> {
  const { values, files } = await readCheckpoint(dir, { policy: m.spec.id, layout: layoutDigest(m) });
  const number = (k: string): number => {
    const x = values[k];
    if (typeof x !== 'number' || !Number.isInteger(x) || x < 0)
      throw new StudioError(
        'trainer.invalid',
        `The checkpoint ${dir} has no usable '${k}'.`,
        'Resume from an earlier checkpoint.',
      );
    return x;
  };
  const rng = values.rng;
  if (!Array.isArray(rng) || rng.length !== 4 || !rng.every((x) => Number.isInteger(x)))
    throw new StudioError(
      'trainer.invalid',
      `The checkpoint ${dir} has no usable random state.`,
      'Resume from an earlier checkpoint.',
    );
  const arrays = Object.fromEntries(
    Object.entries(ARRAYS).map(([file, key]) => {
      const b = files[file];
      if (b?.byteLength !== m.layout.total * 4)
        throw new StudioError(
          'trainer.invalid',
          `The checkpoint ${dir} has no ${file} of ${m.layout.total} values.`,
          'Resume from an earlier checkpoint.',
        );
      return [key, floatsOf(b)];
    }),
  ) as Record<(typeof ARRAYS)[keyof typeof ARRAYS], Float32Array>;
  return {
    version: number('version'),
    adamSteps: number('adamSteps'),
    // Checkpoints of before December 2026 have one count of both.
    readerSteps: number(values['readerSteps'] === undefined ? 'adamSteps' : 'readerSteps'),
    updateSteps: number('updateSteps'),
    rng: rng as [number, number, number, number],
    ...arrays,
  };
}

export async function exportTheta(dir: string, version: number, theta: Float32Array): Promise<WeightsFile> {
  const path = join(dir, `weights-${label(version)}.f32`),
    data = bytesOf(theta);
  await mkdir(dir, { recursive: true });
  await replaceFile(path, data);
  const old = (await readdir(dir))
    .filter((f) => /^weights-v\d+\.f32$/.test(f) && f !== `weights-${label(version)}.f32`)
    .sort();
  await Promise.all(
    old.slice(0, Math.max(0, old.length - (KEEP_EXPORTS - 1))).map((f) => rm(join(dir, f), { force: true })),
  );
  return { version, path, sha256: sha256(data) };
}
