import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { id, type RunId } from '../../../runtime/domain/index.js';
import { summaryName } from '../../../runtime/protocol/version.js';
import type { RunStatus, RunSummary } from '../../../runtime/protocol/types.js';
import type { SessionPlan } from '../../../runtime/service/runSession.js';
import { isWeightless, keepSummary, leaveRunning, leaveSummary } from '../../../runtime/service/summaryFile.js';
import { withDir } from '../../helpers/data/manager.js';

const said = (dir: string, rollouts: number): Omit<RunSummary, 'status'> => ({
  run: dir,
  id: id<RunId>('r'),
  name: 'x'.repeat(1 + ((rollouts * 7919) % 60_000)),
  createdAt: 1,
  state: 'finished',
  rollouts,
  version: 1,
  seed: 1,
  evals: [],
});

describe('what a run leaves for windows without a runtime', () => {
  it('is whole and what was said last, whoever says it at the same time', () =>
    withDir(async (dir) => {
      const plan: SessionPlan = { config: parseRunFile({}), dir, run: id<RunId>('r'), resume: false },
        status = { rollouts: 0, version: 0 } as RunStatus;
      for (let round = 0; round < 5; round++) {
        const turns = Array.from({ length: 20 }, (_, i) =>
          i % 3 === 0 ? leaveRunning(plan, status) : leaveSummary(dir, said(dir, i + 1)),
        );
        await Promise.all(turns);
        const summary = JSON.parse(await readFile(join(dir, summaryName), 'utf8')) as RunSummary;
        expect(summary).toEqual(said(dir, 20));
        expect(await readdir(dir)).toEqual([summaryName]);
      }
    }));

  it('a run that learned says so when none of its checkpoints is left', () =>
    withDir(async (dir) => {
      const run = said(dir, 1);
      expect(await isWeightless(run)).toBe(true);
      expect(await isWeightless({ ...run, version: 0 })).toBe(false);
      await mkdir(join(dir, 'checkpoints'));
      expect(await isWeightless(run)).toBe(true);
      await mkdir(join(dir, 'checkpoints', 'v000001'));
      expect(await isWeightless(run)).toBe(false);
    }));

  it('is kept for lists too, and no writer of the same loses its file to another', () =>
    withDir(async (dir) => {
      const file = join(dir, 'summaries', 'a.json'),
        texts = Array.from({ length: 20 }, (_, i) => 'x'.repeat(30_000 + i));
      await Promise.all(texts.map((t) => keepSummary(file, t)));
      expect(texts).toContain(JSON.parse(await readFile(file, 'utf8')));
      expect(await readdir(join(dir, 'summaries'))).toEqual(['a.json']);
    }));
});
