import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SoakReport } from '../../soak/report.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { ensureBundle } from '../../helpers/run/cli.js';

/** The short form of `npm run soak` (test/soak/README.md): a look every 2 s. */
const MINUTES = 1 / 5;
const LEAST_LOOKS = 3;
const noLocal = await whyNoLocalDesktops();

describe.skipIf(noLocal !== undefined)('a run that is watched while it goes on', () => {
  it(
    'is sampled in all of its processes, answers, leaks nothing, and writes what a step costs',
    { timeout: 600_000 },
    async () => {
      ensureBundle();
      const dir = await mkdtemp(join(tmpdir(), 'dart-soak-report-')),
        file = join(dir, 'report.json');
      try {
        const said = await new Promise<string>((done) => {
          execFile(
            process.execPath,
            ['scripts/soak.mjs', '--minutes', String(MINUTES), '--no-window', '--json', file],
            { maxBuffer: 16 << 20 },
            (_e, stdout, stderr) => done(stderr + stdout),
          );
        });
        const text = await readFile(file, 'utf8').catch(() => undefined);
        expect(text, said).toBeDefined();
        const report = JSON.parse(text!) as SoakReport,
          roles = ['daemon', 'replica', 'trainer'];
        for (const of of [report.memory, report.descriptors]) expect(Object.keys(of).sort()).toEqual(roles);
        for (const role of roles) {
          expect(report.memory[role]!.mean_mb, role).toBeGreaterThan(0);
          expect(report.descriptors[role]!.most, role).toBeGreaterThan(0);
        }
        expect(report.looks).toBeGreaterThanOrEqual(LEAST_LOOKS);
        expect(report.steps).toBeGreaterThan(0);
        expect(report.bytes_per_step.journal).toBeGreaterThan(0);
        expect(report.event_loop_ms.p99).toBeGreaterThan(0);
        expect(report.answer_ms.p99).toBeGreaterThan(0);
        // Those that a desktop's programs need for a moment come and go; a leak piles up.
        for (const [role, { first, last }] of Object.entries(report.descriptors))
          expect(last, `${role}: ${first} at first`).toBeLessThan(2 * first);
        // How long something takes is judged by the long form alone.
        expect(report.bars.filter((b) => b.judged && !b.ok && !b.time)).toEqual([]);
        expect(report.bars.filter((b) => b.time)).not.toEqual([]);
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    },
  );
});
