import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Step } from '../../../runtime/domain/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { endAll, ensureBundle, folderOf, replay, start } from '../../helpers/run/cli.js';
import { smallRun } from '../../helpers/run/smallRun.js';

/** Rollouts that begin in the middle of others, on real desktops. */
const noLocal = await whyNoLocalDesktops();
if (noLocal) console.warn(`skipped: branches on real desktops (${noLocal})`);

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-branches-'));
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

describe.skipIf(noLocal !== undefined)('a run with branches', () => {
  it('acts out what they share to the pixel, trains only what is their own, and accounts for every one', async () => {
    const file = join(dir, 'run.json');
    await writeFile(
      file,
      smallRun('branches', {
        tasks: { families: ['form-two', 'list-confirm'] },
        rollout: { maxSteps: 5 },
        curation: {
          branches: { enabled: true, count: 2 },
          dynamicRollouts: { max: 4 },
          dynamicLength: { enabled: false },
        },
        budget: { rollouts: 24 },
      }),
    );
    const run = start('train', file, '--runs', join(dir, 'runs'), '--json'),
      folder = await folderOf(run),
      ended = await run.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    const journal = await replay(folder),
      heads = new Map(journal.of('trajectory.recorded').map((e) => [e.head.id, e.head])),
      steps = new Map<string, Step[]>();
    for (const e of journal.of('rollout.step')) steps.set(e.rollout, [...(steps.get(e.rollout) ?? []), e.step]);
    const branches = [...heads.values()].flatMap((head) => (head.branch ? [{ head, branch: head.branch }] : [])),
      reached = branches.filter(({ head }) => head.outcome.kind !== 'error');
    expect(journal.damage).toBe(0);
    expect(reached.length).toBeGreaterThan(3);
    for (const { head, branch } of reached) {
      const own = steps.get(head.id)!,
        other = steps.get(branch.of)!;
      expect(own.slice(0, branch.step + 1).map((s) => s.frame.hash)).toEqual(
        other.slice(0, branch.step + 1).map((s) => s.frame.hash),
      );
      expect(own.slice(0, branch.step).map((s) => s.actions)).toEqual(
        other.slice(0, branch.step).map((s) => s.actions),
      );
    }
    for (const g of journal.of('group.formed'))
      for (const m of g.members) {
        const from = m.injected ? 0 : (heads.get(m.rollout)?.branch?.step ?? 0);
        expect(m.keep.slice(0, from)).not.toContain(true);
      }
    // Those that met another screen are counted as such, and as nothing else.
    const gone = branches.filter(
      ({ head }) => head.outcome.kind === 'error' && head.outcome.error.kind === 'rollout.diverged',
    );
    expect(journal.counts.retired.diverged ?? 0).toBe(gone.length);
    expect(gone.length).toBeLessThan(reached.length);
  });
});
