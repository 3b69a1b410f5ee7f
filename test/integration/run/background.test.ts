import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GLYPH_SPEC } from '../../../runtime/domain/index.js';
import { createTrainer } from '../../../runtime/trainer/native/engine.js';
import { processTree, statOf } from '../../helpers/machine/processes.js';
import { ensureBundle } from '../../helpers/run/cli.js';
import { runFileOptions } from '../../helpers/trainer/options.js';

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-background-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const threads = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`).map((t) => statOf(`${pid}/task/${t}`)!.nice);

describe.skipIf(process.platform !== 'linux')('a child process', () => {
  it.each([
    { background: true, nice: 10 },
    { background: false, nice: 0 },
  ])(
    'gives way when it computes in the background: $background',
    async ({ background, nice }) => {
      const own = statOf(process.pid)!,
        trainer = await createTrainer({
          entry: { file: resolve('dist/runtime.js'), background },
          spec: GLYPH_SPEC,
          dir: join(dir, String(background)),
          seed: 1,
          options: runFileOptions({}),
        });
      try {
        const { pid } = processTree(process.pid).find((p) => p.what.includes('__trainer'))!;
        expect([...new Set(threads(pid))]).toEqual([Math.min(19, own.nice + nice)]);
        expect(statOf(pid)!.session === own.session).toBe(!background);
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
