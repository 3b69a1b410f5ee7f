import { spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BatchId, FrameRef, RolloutId } from '../../../runtime/domain/index.js';
import { Ledger } from '../../../runtime/data/ledger.js';
import { ledgerMoves } from '../../../runtime/data/events.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { bundle, dataConfig, managerOptions, withDir } from '../../helpers/data/manager.js';
import { DataManager } from '../../../runtime/data/dataManager.js';

let child: string, entry: { file: string };
beforeAll(async () => {
  entry = await bundle('test/helpers/data/indexEntry.ts', 'index');
  child = (await bundle('test/helpers/data/managerChild.ts', 'child')).file;
});
afterAll(async () => {
  for (const f of [child, entry?.file]) if (f) await rm(dirname(f), { recursive: true, force: true });
});

interface Said {
  queued?: RolloutId;
  step?: [RolloutId, number, string];
  recorded?: RolloutId;
  outcome?: string;
  steps?: number;
  claimed?: BatchId;
  trained?: BatchId;
  version?: number;
}

/** Runs the child and kills it with SIGKILL after so many lines; gives what it had said. */
async function runAndKill(dir: string, seed: number, lines: number): Promise<Said[]> {
  const p = spawn(process.execPath, [child, dir, entry.file, String(seed)], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said: Said[] = [];
  let stderr = '';
  p.stderr.on('data', (d: Buffer) => {
    stderr += d.toString();
  });
  const ended = new Promise<string | null>((resolve) => p.on('exit', (_c, signal) => resolve(signal)));
  for await (const line of createInterface({ input: p.stdout })) {
    said.push(JSON.parse(line) as Said);
    if (said.length === lines) p.kill('SIGKILL');
  }
  expect(await ended, stderr).toBe('SIGKILL');
  return said;
}

describe('killed with SIGKILL', () => {
  it('has every acknowledged record, closes its ledger, and goes on from there', () =>
    withDir(async (dir) => {
      const said: Said[] = [];
      // Each round resumes what the one before left behind.
      for (const [round, lines] of [40, 7, 150, 1, 90, 230].entries())
        said.push(...(await runAndKill(dir, round, lines)));

      const reader = await RunReader.open(dir, { index: 'local' });
      const ledger = new Ledger(),
        seen = new Set<string>(),
        damage: unknown[] = [];
      let next = 0;
      for await (const e of reader.events(0, (d) => damage.push(d))) {
        expect(e.seq).toBe(next++);
        ledger.moveAll(ledgerMoves(e));
        if (e.type === 'rollout.queued') seen.add(`queued ${e.order.rollout}`);
        if (e.type === 'rollout.step') seen.add(`step ${e.rollout} ${e.step.index} ${e.step.frame.hash}`);
        if (e.type === 'trajectory.recorded') seen.add(`recorded ${e.head.id} ${e.head.outcome.kind}`);
        if (e.type === 'batch.claimed') seen.add(`claimed ${e.batch}`);
        if (e.type === 'batch.trained') seen.add(`trained ${e.batch} ${e.version}`);
      }
      for (const s of said) {
        if (s.queued) expect(seen).toContain(`queued ${s.queued}`);
        if (s.step) expect(seen).toContain(`step ${s.step.join(' ')}`);
        if (s.recorded) expect(seen).toContain(`recorded ${s.recorded} ${s.outcome}`);
        if (s.claimed) expect(seen).toContain(`claimed ${s.claimed}`);
        if (s.trained) expect(seen).toContain(`trained ${s.trained} ${s.version}`);
      }
      // Only a write that was under way may be torn, never anything before it.
      expect(damage.length).toBeLessThanOrEqual(1);
      const c = ledger.counts();
      expect(c.generated).toBe(c.trained + c.inFlight + Object.values(c.retired).reduce((a, b) => a + b, 0));
      expect(c.retired.lost).toBeGreaterThan(0);
      expect(c.trained).toBeGreaterThan(0);
      expect(new Set(said.flatMap((s) => s.queued ?? [])).size).toBe(said.filter((s) => s.queued).length);

      // Accepted trajectories come back whole, frames included.
      const recorded = said.filter((s) => s.recorded);
      expect(recorded.length).toBeGreaterThan(20);
      for (const s of recorded) {
        const t = await reader.readTrajectory(s.recorded!);
        expect(t?.steps).toHaveLength(s.steps!);
        for (const step of t!.steps) expect((await reader.frames.get(step.frame as FrameRef)).width).toBe(48);
      }
      await reader.close();

      // The kernel gave the lock back, and the next start takes it.
      const dm = await DataManager.open(
        managerOptions(dir, dataConfig({ dynamicRollouts: { max: 4 } }), { index: entry }),
      );
      expect(dm.stats().ledger.trained).toBe(c.trained);
      expect(dm.stats().ledger.byState).toMatchObject({ queued: 0, running: 0, claimed: 0 });
      await dm.close();
    }));
});
