import { existsSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { sha256, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';

/** What trains on needs, and what acts does not: left out of a policy that is kept, to be of half the size. */
const LEFT_OUT = ['adam_m.f32', 'adam_v.f32', 'reference.f32'];

/**
 * A checkpoint to measure that holds all a checkpoint has: this one, or a copy under `work` of one that was kept without
 * its optimizer (zeros in its place). Throws where the weights are not those that its manifest names.
 */
export async function wholeCheckpoint(kept: string, work: string): Promise<string> {
  const dir = resolve(kept);
  if (LEFT_OUT.every((f) => existsSync(join(dir, f)))) return dir;
  const { policy, layout, values, files } = JSON.parse(readFileSync(join(dir, 'manifest.json'), 'utf8')) as {
      policy: string;
      layout: string;
      values: Record<string, unknown>;
      files: Record<string, { sha256: string }>;
    },
    there = Object.keys(files).filter((f) => !LEFT_OUT.includes(f)),
    read = Object.fromEntries(there.map((f) => [f, readFileSync(join(dir, f))])),
    weights = read['weights.f32']!,
    zeros = Buffer.alloc(weights.byteLength);
  for (const f of there)
    if (sha256(read[f]!) !== files[f]!.sha256) throw new Error(`${join(dir, f)} is not what its manifest says`);
  const whole = join(work, 'checkpoints', basename(dir));
  await writeCheckpoint(
    whole,
    { policy, layout, values },
    { ...read, 'adam_m.f32': zeros, 'adam_v.f32': zeros, 'reference.f32': weights },
  );
  return whole;
}
