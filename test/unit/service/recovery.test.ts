import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Recovered } from '../../../runtime/protocol/activeRuns.js';
import { ActiveRuns } from '../../../runtime/service/activeRuns.js';
import { recoverRuns } from '../../../runtime/service/recovery.js';
import type { Studio } from '../../../runtime/service/studio.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-recovery-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A runtime that ended in a run whose folder is not there when the next one starts. */
async function recovered(run: string): Promise<{ readonly told: readonly Recovered[]; readonly runs: ActiveRuns }> {
  const failed = (m: string): never => {
    throw new Error(m);
  };
  await new ActiveRuns(dir, { failed }).begin({ run, id: 'a', name: 'a', minutes: undefined, alone: false });
  const told: Recovered[] = [],
    runs = new ActiveRuns(dir, { failed });
  await recoverRuns({ activeRuns: runs } as Partial<Studio> as Studio, (r) => told.push(r));
  await runs.written();
  return { told, runs };
}

describe('a run that was active', () => {
  it('and was deleted is forgotten, and that is said', async () => {
    await mkdir(join(dir, 'runs'));
    const { told, runs } = await recovered(join(dir, 'runs', 'a'));
    expect(told).toMatchObject([{ outcome: 'failed', message: expect.stringContaining('folder is gone') as string }]);
    expect(runs.runs).toEqual([]);
  });
  it('on a disk that is not there yet is not forgotten, and it is said what to do', async () => {
    const { told, runs } = await recovered(join(dir, 'disk', 'runs', 'a'));
    expect(told).toMatchObject([{ outcome: 'left', message: expect.stringContaining('mount it') as string }]);
    expect(runs.leftBecause(join(dir, 'disk', 'runs', 'a'))).toContain(join(dir, 'disk', 'runs'));
  });
});
