import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GLYPH_SPEC, type ProcessEntry } from '../domain/index.js';
import { createTrainer } from '../trainer/native/engine.js';

/** The bundle this code runs from; what child processes are started with. */
export const thisBundle = (): ProcessEntry => ({ file: fileURLToPath(import.meta.url) });

/** Starts a trainer process and ends it again: proves that ONNX Runtime loads. Throws `engine.unavailable`. */
export async function probeEngine(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-studio-'));
  const t0 = Date.now();
  try {
    const trainer = await createTrainer({ entry: thisBundle(), spec: GLYPH_SPEC, dir, seed: 1 });
    await trainer.close();
    return `works (trainer process ready in ${Date.now() - t0} ms)`;
  } finally { await rm(dir, { recursive: true, force: true }); }
}
