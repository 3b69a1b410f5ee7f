import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { StudioError, id, type RunId } from '../../../runtime/domain/index.js';
import { activeRunsFile, type Recovered } from '../../../runtime/protocol/activeRuns.js';
import { ActiveRuns } from '../../../runtime/service/activeRuns.js';
import { recoverRuns } from '../../../runtime/service/recovery.js';
import type { Studio } from '../../../runtime/service/studio.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-recovery-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A runtime that ended in a run whose folder is not there when the next one starts. */
async function recovered(
  run: string,
  studio: Partial<Studio> = {},
): Promise<{ readonly told: readonly Recovered[]; readonly runs: ActiveRuns }> {
  const failed = (m: string): never => {
    throw new Error(m);
  };
  await new ActiveRuns(dir, { failed }).begin({ run, id: 'a', name: 'a', minutes: undefined, alone: false });
  const told: Recovered[] = [],
    runs = new ActiveRuns(dir, { failed });
  await recoverRuns({ ...studio, activeRuns: runs } as Partial<Studio> as Studio, (r) => told.push(r));
  await runs.written();
  return { told, runs };
}

describe('a run that was active', () => {
  it('is not forgotten by a daemon that cannot read its record: that is kept under another name', async () => {
    const file = join(dir, activeRunsFile),
      said: string[] = [],
      failed = (m: string): void => void said.push(m),
      begun = (run: string): Promise<void> => {
        const runs = new ActiveRuns(dir, { failed });
        return runs.begin({ run, id: 'a', name: 'a', minutes: undefined, alone: false });
      },
      kept = async (): Promise<string[]> => (await readdir(dir)).filter((n) => n.includes('.unreadable-')).sort();
    await begun('/runs/a');
    expect([said, await kept()]).toEqual([[], []]);
    const text = await readFile(file, 'utf8'),
      { runs } = JSON.parse(text) as { runs: object[] },
      newer = JSON.stringify({ format: 1, runs: [...runs, { of: 'a newer version' }] });
    await writeFile(file, newer);
    await begun('/runs/b');
    expect((await new ActiveRuns(dir, { failed }).loaded, JSON.parse(await readFile(file, 'utf8')))).toMatchObject({
      runs: [{ run: '/runs/a' }, { run: '/runs/b' }],
    });
    const [copy] = await kept();
    expect(await readFile(join(dir, copy!), 'utf8')).toBe(newer);
    expect(said).toEqual([expect.stringContaining(copy!)]);
    await rm(join(dir, copy!));
    await rm(file);
    await mkdir(file);
    await begun('/runs/c');
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ runs: [{ run: '/runs/c' }] });
    expect(said[1]).toContain((await kept())[0]);
  });
  it('and could not be begun again is no run that ended the runtime, however often', async () => {
    const run = join(dir, 'runs', 'a'),
      begin = vi.fn(() => Promise.reject(new StudioError('desktop.image', 'No image.', 'Build it.')));
    const create = { id: id<RunId>('a'), createdAt: 1, name: 'a', config: parseRunFile({}) };
    await (await RunStore.open(run, { index: 'local', create })).close();
    for (let start = 0; start < 5; start++) {
      const { told } = await recovered(run, { begin, closing: new AbortController().signal });
      expect(told).toMatchObject([{ outcome: 'failed', message: expect.stringContaining('No image.') as string }]);
    }
    expect(begin).toHaveBeenCalledTimes(5);
  });

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
