import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RecoveryBar } from '../../chaos/report.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { ensureBundle } from '../../helpers/run/cli.js';

/** The short form of `npm run chaos` (test/chaos/README.md). */
const KILLS = 20;
const noLocal = await whyNoLocalDesktops();

interface Report {
  readonly kills: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly skipped: number;
  readonly trained_twice: number;
  readonly orphans: number;
  readonly steps: number;
  readonly versions: number;
  readonly bars: readonly RecoveryBar[];
  readonly problems: readonly string[];
}

describe.skipIf(noLocal !== undefined)('a run under faults', () => {
  it(
    `loses, repeats and skips nothing over ${KILLS} of them, and leaves nothing behind`,
    { timeout: 900_000 },
    async () => {
      ensureBundle();
      const dir = await mkdtemp(join(tmpdir(), 'dart-chaos-report-')),
        file = join(dir, 'report.json');
      try {
        const said = await new Promise<string>((done) => {
          execFile(
            process.execPath,
            ['scripts/chaos.mjs', '--kills', String(KILLS), '--seed', '7', '--json', file],
            { maxBuffer: 16 << 20 },
            (_e, stdout, stderr) => done(stderr + stdout),
          );
        });
        const report = JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) as Partial<Report>;
        expect(report.problems, said).toEqual([]);
        expect(report).toMatchObject({
          kills: KILLS,
          lost: 0,
          duplicated: 0,
          skipped: 0,
          trained_twice: 0,
          orphans: 0,
        });
        expect(report.versions).toBeGreaterThan(0);
        // How long recovery takes is for `npm run chaos` to judge, on a machine of its own.
        expect(report.bars).toMatchObject([{ name: 'recovery_max_ms' }]);
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  );
});
