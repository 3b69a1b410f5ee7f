import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GLYPH_SPEC } from '../../../runtime/domain/index.js';
import { createTrainer } from '../../../runtime/trainer/native/engine.js';
import { ensureBundle, processTree } from './cli.js';
import { runFileOptions } from '../../helpers/trainerOptions.js';

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-background-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** Fields of /proc/PID/stat (or a thread's) behind the name: session is the 4th, nice the 17th. */
const stat = (path: string): { readonly session: number; readonly nice: number } => {
  const f = readFileSync(`/proc/${path}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return { session: Number(f[3]), nice: Number(f[16]) };
};
const threads = (pid: number): number[] => readdirSync(`/proc/${pid}/task`).map((t) => stat(`${pid}/task/${t}`).nice);

describe.skipIf(process.platform !== 'linux')('a child process', () => {
  it.each([
    { background: true, nice: 10 },
    { background: false, nice: 0 },
  ])(
    'gives way when it computes in the background: $background',
    async ({ background, nice }) => {
      const own = stat(String(process.pid)),
        trainer = await createTrainer({
          entry: { file: resolve('dist/runtime.js'), background },
          spec: GLYPH_SPEC,
          dir: join(dir, String(background)),
          seed: 1,
          options: runFileOptions({}),
        });
      try {
        const { pid } = processTree(process.pid).find((p) => p.what.includes('__trainer'))!;
        expect([...new Set(threads(pid))]).toEqual([own.nice + nice]);
        expect(stat(String(pid)).session === own.session).toBe(!background);
        const group = `/proc/${pid}/autogroup`,
          text = (): string => {
            try {
              return readFileSync(group, 'utf8');
            } catch {
              return '';
            }
          };
        // Kernels without session scheduling have no such file, or an empty one.
        if (background && text().includes('nice')) await expect.poll(text).toMatch(/nice 10$/m);
      } finally {
        await trainer.close();
      }
    },
    60_000,
  );
});
