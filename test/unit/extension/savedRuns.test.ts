import { describe, expect, it } from 'vitest';
import { savedRuns, type RunFiles } from '../../../extension/model/savedRuns.js';
import { runRow } from '../../../extension/views/runRows.js';

const filesOf = (files: Readonly<Record<string, string>>): RunFiles => ({
  list: (dir) =>
    Promise.resolve([
      ...new Set(
        Object.keys(files)
          .filter((f) => f.startsWith(`${dir}/`))
          .map((f) => f.slice(dir.length + 1).split('/')[0]!),
      ),
    ]),
  read: (file) => Promise.resolve(files[file]),
});
const meta = (id: string, createdAt: number): string =>
  JSON.stringify({ id, createdAt, name: 'quickstart', config: { seed: 3 } });

describe('runs without a runtime', () => {
  it('are those whose folder says so, newest first, with what they came to', async () => {
    const summary = {
      state: 'finished',
      rollouts: 6255,
      version: 80,
      evals: [0.1, 0.9],
      lastEval: { at: 1, version: 80, episodes: 64, successes: 58, low: 0.8, high: 0.96 },
    };
    const runs = await savedRuns(
      ['/w/runs', '/extra/one', '/gone'],
      filesOf({
        '/w/runs/a/run.json': meta('a', 1),
        '/w/runs/a/summary.json': JSON.stringify(summary),
        '/w/runs/a/checkpoints/v000080': 'weights',
        '/w/runs/b/run.json': meta('b', 3),
        '/w/runs/b/summary.json': JSON.stringify({ ...summary, state: 'running' }),
        '/w/runs/notes/readme.txt': 'no run',
        '/extra/one/run.json': meta('one', 2),
      }),
    );
    expect(runs.map((r) => [r.run, r.state, r.rollouts, r.unread ?? false, r.seed])).toEqual([
      // Its file was written while it was under way, and no runtime is there: it was interrupted.
      ['/w/runs/b', 'interrupted', 6255, false, 3],
      ['/extra/one', 'stopped', 0, true, 3],
      ['/w/runs/a', 'finished', 6255, false, 3],
    ]);
    // Copied without its checkpoints, it cannot go on.
    expect(runs.map((r) => r.weightless ?? false)).toEqual([true, false, false]);
    expect(runs[2]!.lastEval).toMatchObject({ episodes: 64, successes: 58 });
  });
  it('nothing of what the files say is believed', async () => {
    const runs = await savedRuns(
      ['/r'],
      filesOf({
        '/r/c/run.json': JSON.stringify({ id: 'c', name: { x: 1 }, createdAt: 'now', config: [] }),
        '/r/c/summary.json': JSON.stringify({ state: 'owned', rollouts: 'many', evals: [1, 'x', null], lastEval: 7 }),
        '/r/d/run.json': JSON.stringify({ id: 'd' }),
        '/r/d/summary.json': '[1]',
      }),
    );
    expect(runs).toEqual([
      {
        run: '/r/d',
        id: 'd',
        name: 'd',
        createdAt: 0,
        state: 'stopped',
        rollouts: 0,
        version: 0,
        evals: [],
        unread: true,
      },
      { run: '/r/c', id: 'c', name: 'c', createdAt: 0, state: 'interrupted', rollouts: 0, version: 0, evals: [1] },
    ]);
  });
  it('are listed with why where run.json cannot be understood, and a folder without one is no run', async () => {
    const files = filesOf({
        '/r/a/run.json': '{ "id": ',
        '/r/b/run.json': JSON.stringify({ id: 5 }),
        '/r/notes/readme.txt': 'no run',
      }),
      runs = await savedRuns(['/r', '/r/b'], {
        ...files,
        // Too large, or not a file.
        read: (f) => (f === '/r/b/run.json' ? Promise.resolve(undefined) : files.read(f)),
      });
    expect(runs.map((r) => [r.run, r.damaged?.kind])).toEqual([
      ['/r/b', 'store.damaged'],
      ['/r/a', 'store.damaged'],
    ]);
    const row = runRow(runs[1]!, { selected: false, now: 5 });
    expect(row).toMatchObject({ context: 'run.damaged', description: 'cannot be read', spoken: 'a, cannot be read' });
    expect(row.tooltip).toContain('cannot be understood');
    expect(row.tooltip).not.toContain('Started');
  });
});
