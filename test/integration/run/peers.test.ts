import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { ensureBundle } from '../../helpers/run/cli.js';

const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: what others read of a run (${noLocal})`);

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-peers-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

describe.skipIf(noLocal !== undefined)('TensorBoard and pandas themselves', () => {
  // The first time they are installed from PyPI.
  it('read what is exported, and what a run writes while it goes on', { timeout: 600_000 }, async (context) => {
    const out = join(dir, 'read.json'),
      script = spawn(process.execPath, ['scripts/tensorboard-peers.mjs', '--short', '--out', out], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
    let said = '';
    for (const stream of [script.stdout, script.stderr]) stream.on('data', (b: Buffer) => (said += b.toString()));
    const [code] = (await once(script, 'close')) as [number | null];
    if (code === 75) {
      console.warn(`skipped: ${said.trim().split('\n').at(-1)!}`);
      context.skip();
    }
    expect(code, said).toBe(0);
    const read = JSON.parse(await readFile(out, 'utf8')) as Readonly<Record<string, unknown>>;
    for (const count of [
      'tags_read',
      'scalars_read',
      'metric_rows_read',
      'rollout_rows_read',
      'parquet_cells_read',
      'live_tags_read',
      'live_scalars_read',
      'live_updates',
    ])
      expect(read[count], count).toBeGreaterThan(0);
  });
});
