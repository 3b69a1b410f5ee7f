import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunReader, RunStore } from '../../../runtime/data/store/runStore.js';
import { id, random, type FamilyId, type RolloutId, type RunId, type TaskId } from '../../../runtime/domain/index.js';
import type {
  TrajectoryFilter,
  TrajectorySort,
  CurationChartData,
  CurationView,
} from '../../../runtime/protocol/types.js';
import { curationView } from '../../../runtime/queries/curation.js';
import { series, successCurves } from '../../../runtime/queries/curves.js';
import { outcomes } from '../../../runtime/queries/outcomes.js';
import type { RunFacts } from '../../../runtime/queries/facts.js';
import { factsOf, suiteFamilies } from '../../../runtime/service/facts.js';
import { interpreter as interpreterFor } from '../../../runtime/service/interpreter.js';
import { lanes } from '../../../runtime/queries/lanes.js';
import { checkpoints, endOf, evalPoints, ledgerFromIndex, summaryOf } from '../../../runtime/queries/overview.js';
import { listTrajectories } from '../../../runtime/queries/rows.js';
import { spark, taskRows, untriedTasks } from '../../../runtime/queries/tasks.js';
import { groupView, nextSeq, trajectoryView } from '../../../runtime/queries/trajectory.js';
import { wilson } from '../../../runtime/domain/stats.js';
import { makeStep } from '../../helpers/data/manager.js';
import { families, writeSyntheticRun, type SyntheticRun, type Told } from '../../helpers/data/syntheticRun.js';

/** Every query against a journal whose truth is known, through the real index. */
let dir: string, run: RunReader, truth: SyntheticRun, facts: RunFacts;
const interpreter = interpreterFor({ baseline: 'trajectory', norm: 'std', credit: 'trajectory' });
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-queries-'));
  truth = await writeSyntheticRun(join(dir, 'run'), { groups: 30, size: 4, steps: 5, running: 2 });
  run = await RunReader.open(join(dir, 'run'), { index: 'local' });
  facts = await factsOf(run);
});
afterAll(async () => {
  await run.close();
  await rm(dir, { recursive: true, force: true });
});

const rollouts = (p: (t: Told) => boolean = () => true): string[] => truth.told.filter(p).map((t) => t.id);
async function all(
  filter: TrajectoryFilter | undefined,
  sort: TrajectorySort,
  limit: number,
  alive = true,
): Promise<{ ids: string[]; totals: number[] }> {
  const ids: string[] = [],
    totals: number[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await listTrajectories(run, { filter, sort, limit, cursor }, alive);
    ids.push(...page.rows.map((r) => r.rollout));
    totals.push(page.total);
    expect(page.rows.length).toBeLessThanOrEqual(limit);
    if (page.cursor === undefined) return { ids, totals };
    ({ cursor } = page);
  }
}

function dataOf<F extends CurationChartData['form']>(
  c: CurationView,
  id: string,
  form: F,
): Extract<CurationChartData, { form: F }> {
  const data = c.charts.find((x) => x.id === id)?.data;
  if (data?.form !== form) throw new Error(`${id} is no chart of form ${form}`);
  return data as Extract<CurationChartData, { form: F }>;
}

describe('trajectory list', () => {
  it('pages through every order without losing or repeating a row', async () => {
    const everyone = [
      ...rollouts(),
      ...Array.from({ length: truth.probes }, (_, i) => `probe/untrained/v0/${i}`),
    ].sort();
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<TrajectorySort>('newest', 'oldest', 'longest', 'entropy', 'reward'),
        fc.integer({ min: 1, max: 70 }),
        async (sort, limit) => {
          const { ids, totals } = await all(undefined, sort, limit);
          expect([...ids].sort()).toEqual(everyone);
          expect(new Set(totals)).toEqual(new Set([everyone.length]));
        },
      ),
      { numRuns: 25 },
    );
  });

  it('sorts by the chosen column', async () => {
    const by = new Map(truth.told.map((t) => [t.id, t])),
      told = async (sort: TrajectorySort) =>
        (await all({ provenance: ['rollout'] }, sort, 1000)).ids.map((i) => by.get(i)!);
    const falling = (xs: readonly number[]) => {
      for (let i = 1; i < xs.length; i++) expect(xs[i]).toBeLessThanOrEqual(xs[i - 1]!);
    };
    falling((await told('longest')).map((t) => t.steps));
    falling((await told('entropy')).map((t) => Number((t.outcome === 'running' ? -1 : t.entropy).toFixed(6))));
    falling((await told('reward')).map((t) => t.reward ?? -1));
    expect((await told('newest')).map((t) => t.id)).toEqual((await told('oldest')).map((t) => t.id).reverse());
  });

  it.each<[string, TrajectoryFilter, (t: Told) => boolean]>([
    ['outcome', { outcome: ['failure', 'error'] }, (t) => t.outcome === 'failure' || t.outcome === 'error'],
    ['running', { outcome: ['running'] }, (t) => t.outcome === 'running'],
    ['family', { family: families[1]! }, (t) => t.family === families[1]],
    ['group', { group: 'g000003' }, (t) => t.group === 'g000003'],
    ['task', { task: `${families[0]!}#3` }, (t) => t.group === 'g000004'],
    [
      'version',
      { version: { min: 3, max: 5 } },
      (t) => t.outcome !== 'running' && t.versions[0] >= 3 && t.versions[0] <= 5,
    ],
    ['tag of retirement', { tag: 'no-variance' }, (t) => t.reason === 'no-variance'],
    ['tag truncated', { tag: 'truncated' }, (t) => t.outcome === 'failure'],
    [
      'text',
      { text: 'number 7' },
      (t) => Number(t.id.slice(1)) === 7 || (Number(t.id.slice(1)) >= 70 && Number(t.id.slice(1)) < 80),
    ],
    ['text that SQL would take for a pattern', { text: '%' }, () => false],
    [
      'everything at once',
      { outcome: ['success'], family: families[2]!, version: { min: 2 } },
      (t) => t.outcome === 'success' && t.family === families[2] && t.versions[1] >= 2,
    ],
  ])('filters by %s', async (_, filter, p) => {
    const want = rollouts(p),
      { ids, totals } = await all({ provenance: ['rollout'], ...filter }, 'oldest', 7);
    expect(ids).toEqual(want);
    expect(totals[0]).toBe(want.length);
    expect(want.length > 0 || filter.text === '%').toBe(true);
  });

  it('filters by what a person took a step of', async () => {
    const { told } = await writeSyntheticRun(join(dir, 'assisted'), {
        groups: 5,
        size: 4,
        running: 1,
        assistedEvery: 6,
      }),
      assistedRun = await RunReader.open(join(dir, 'assisted'), { index: 'local' });
    for (const assisted of [true, false]) {
      const filter = { assisted, provenance: ['rollout' as const] },
        { rows } = await listTrajectories(assistedRun, { filter, sort: 'oldest' }, true);
      expect(rows.map((r) => r.rollout)).toEqual(told.filter((t) => t.assisted === assisted).map((t) => t.id));
      expect(rows.length).toBeGreaterThan(1);
      expect(rows.every((r) => (r.assisted ?? false) === assisted)).toBe(true);
    }
    await assistedRun.close();
  });

  it('tells an evaluation by its tag, and its probes apart', async () => {
    const { ids } = await all({ tag: 'eval:untrained' }, 'oldest', 100),
      page = await listTrajectories(run, { filter: { provenance: ['probe'] } }, true);
    expect(ids).toHaveLength(truth.probes);
    expect(page.rows.every((r) => r.tags?.includes('eval:untrained') && r.instruction.startsWith('probe'))).toBe(true);
  });

  it('calls what ran when the process died an error, not running', async () => {
    const lost = await listTrajectories(run, { filter: { outcome: ['error'] } }, false),
      running = rollouts((t) => t.outcome === 'running');
    expect(running).toHaveLength(2);
    expect(lost.rows.filter((r) => running.includes(r.rollout)).map((r) => [r.outcome, r.errorKind])).toEqual([
      ['error', 'lost'],
      ['error', 'lost'],
    ]);
    expect((await listTrajectories(run, { filter: { outcome: ['running'] } }, false)).rows).toEqual([]);
  });

  it.each([
    'nonsense',
    Buffer.from('["oldest",1,2]').toString('base64url'),
    Buffer.from('["newest","x",2]').toString('base64url'),
  ])('refuses a cursor that is not its own: %s', async (cursor) => {
    await expect(listTrajectories(run, { cursor, sort: 'newest' }, true)).rejects.toMatchObject({
      kind: 'params.invalid',
    });
  });
});

describe('a probe', () => {
  it('that an interrupted run begins again shows its new steps only, and was lost in between', async () => {
    const folder = join(dir, 'probe'),
      rollout = id<RolloutId>('probe/final/v3/0'),
      family = id<FamilyId>('f'),
      task = id<TaskId>('f#1');
    const begin = {
      type: 'trajectory.started',
      rollout,
      family,
      task,
      instruction: 'again',
      cap: 4,
      provenance: 'probe',
      version: 3,
      desktop: 'd',
    } as const;
    const step = (index: number) =>
      ({ type: 'rollout.step', rollout, step: makeStep(index, random(index), { version: 3 }) }) as const;
    const opened = (resumed: boolean) => ({ type: 'run.opened', run: id<RunId>('r'), resumed, pid: 1 }) as const;
    const store = await RunStore.open(folder, { index: 'local', create: { id: id<RunId>('r'), createdAt: 1 } }),
      at = async () => {
        const [r] = (await listTrajectories(store, {}, true)).rows;
        return [r!.outcome, r!.errorKind, r!.steps, r!.instruction];
      };
    try {
      for (const e of [opened(false), begin, step(0), step(1)]) await store.append(e);
      expect(await at()).toEqual(['running', undefined, 2, 'again']);
      await store.append(opened(true));
      expect(await at()).toEqual(['error', 'lost', 2, 'again']);
      for (const e of [begin, step(0)]) await store.append(e);
      expect(await at()).toEqual(['running', undefined, 1, 'again']);
    } finally {
      await store.close();
    }
  });
});

describe('a trajectory', () => {
  it('holds steps, mask, advantage, weight, alternatives with their places, verdict and group', async () => {
    const t = truth.told.find((x) => x.trained && x.steps > 5)!,
      v = await trajectoryView(run, t.id, { alive: true, interpreter });
    expect(v.row).toMatchObject({
      rollout: t.id,
      outcome: t.outcome,
      reward: t.reward,
      steps: t.steps,
      state: 'trained',
      group: t.group,
    });
    expect(v.live).toBe(false);
    expect(v.steps.map((s) => s.kept)).toEqual(Array.from({ length: t.steps }, (_, i) => i % 5 !== 4));
    for (const s of v.steps) {
      expect(s.weight).toBe(s.kept ? 0.75 : undefined);
      expect(s.advantage).toBe(s.kept ? v.advantage : undefined);
      // Shares of the most that 12 kinds of action and 1,000 cells can have.
      expect(s.entropy).toBeCloseTo((t.entropy / Math.log(12) + t.entropy / Math.log(1000)) / 2);
      expect(s).toMatchObject({ replica: 'replica-1', desktop: 'd1', version: t.versions[0] });
      expect(s.tokens?.[1]?.alternatives?.slice(0, 2)).toEqual([
        { label: '8,8', probability: expect.closeTo(0.6) as number, at: { x: 0, y: 0, width: 16, height: 16 } },
        { label: '24,24', probability: expect.closeTo(0.3) as number, at: { x: 16, y: 16, width: 16, height: 16 } },
      ]);
      expect(s.tokens?.[0]).toMatchObject({
        label: 'click',
        alternatives: [
          { label: 'click', probability: 0.9 },
          { label: 'type', probability: 0.05 },
        ],
      });
    }
    expect(v.steps.slice(0, -1).map((s) => s.after?.hash)).toEqual(v.steps.slice(1).map((s) => s.frame.hash));
    expect(v).toMatchObject({ threshold: 0.2, resetMs: 5, verifyMs: 6, report: { checks: [{ what: 'w' }] } });
    expect(v.group?.members.map((m) => m.rollout)).toEqual(rollouts((x) => x.group === t.group));
    expect(v.group?.members.find((m) => m.rollout === t.id)?.advantage).toBeDefined();
  });

  it('is there while it runs, with a number from which its next steps come', async () => {
    const t = truth.told.find((x) => x.outcome === 'running')!,
      v = await trajectoryView(run, t.id, { alive: true, interpreter });
    expect(v).toMatchObject({ live: true, row: { outcome: 'running', steps: t.steps }, threshold: 0.2 });
    expect(v.steps).toHaveLength(t.steps);
    expect(v.steps.every((s) => s.kept === undefined && s.weight === undefined)).toBe(true);
    expect(v.seq).toBe(truth.events);
  });

  it('says why it was left out of its group', async () => {
    const t = truth.told.find((x) => x.reason === 'no-variance')!,
      g = await groupView(run, t.group, { alive: true, interpreter });
    expect(g.state).toBe('dropped: no-variance');
    expect(g.members.find((m) => m.rollout === t.id)?.retired).toBe('no-variance');
  });

  it('or group that does not exist is not found', async () => {
    await expect(trajectoryView(run, 'r999999', { alive: true, interpreter })).rejects.toMatchObject({
      kind: 'not.found',
    });
    await expect(groupView(run, 'g999999', { alive: true, interpreter })).rejects.toMatchObject({ kind: 'not.found' });
  });
});

describe('overview', () => {
  it('closes the ledger', async () => {
    const l = await ledgerFromIndex(run);
    expect(l).toMatchObject({
      generated: truth.told.length,
      trained: truth.told.filter((t) => t.trained).length,
      closes: true,
    });
    expect(l.byState['running']).toBe(2);
    expect(l.inFlight).toBe(truth.told.filter((t) => !t.trained && t.reason === undefined).length);
    expect(l.retired['no-variance']).toBe(truth.told.filter((t) => t.reason === 'no-variance').length);
    expect(l.generated).toBe(l.trained + l.inFlight + Object.values(l.retired).reduce((a, b) => a + b, 0));
  });

  it('sums a run up, and says how it ended', async () => {
    expect(await summaryOf(run)).toMatchObject({
      id: 'synthetic',
      rollouts: truth.told.length,
      version: truth.updates + 1,
      lastEval: { label: 'untrained', episodes: 6 },
      evals: [1 / 6],
    });
    expect(await endOf(run)).toEqual({ state: 'interrupted' });
    expect(await evalPoints(run)).toHaveLength(1);
    expect(await checkpoints(run)).toEqual([]);
    expect(await nextSeq(run)).toBe(truth.events);
  });

  it('has one row for each family', async () => {
    const rows = await taskRows(run, facts);
    expect(rows.map((r) => r.family)).toEqual([...families].sort());
    for (const r of rows) {
      const mine = truth.told.filter((t) => t.family === r.family && t.reward !== undefined);
      expect(r).toMatchObject({
        rollouts: mine.length,
        successes: mine.filter((t) => t.reward === 1).length,
        cap: 12,
        infeasible: false,
      });
      expect(r.title).toMatch(/\w+: .+/);
      expect(r.spark.length).toBe(Math.min(24, mine.length));
      expect(r.rate).toBeCloseTo(mine.slice(-16).filter((t) => t.reward === 1).length / 16);
    }
    expect(untriedTasks(suiteFamilies()).length).toBeGreaterThan(10);
    expect(spark([], 4)).toEqual([]);
    expect(spark([true, false, true, true], 2)).toEqual([1, 0.5, 0.5, 1]);
  });
});

describe('tasks that are not there any more', () => {
  it('are listed without their words, and it is said why', async () => {
    expect(facts.unread).toBeUndefined();
    await writeSyntheticRun(join(dir, 'moved'), {
      groups: 3,
      config: { tasks: { suite: 'folder', dir: '/no/such/tasks' } },
    });
    const moved = await RunReader.open(join(dir, 'moved'), { index: 'local' }),
      known = await factsOf(moved);
    expect(known.unread?.message).toContain('/no/such/tasks');
    expect((await taskRows(moved, known)).every((r) => r.title === undefined && r.rollouts > 0)).toBe(true);
    await moved.close();
  });
});

describe('dashboard', () => {
  it('draws rolling success with its band, families and infeasible tasks apart', async () => {
    const o = await outcomes(run),
      curves = await successCurves(o, { window: 8, maxPoints: 2000, infeasible: (f) => f === families[2] });
    const ended = truth.told.filter((t) => t.reward !== undefined),
      feasible = ended.filter((t) => t.family !== families[2]);
    expect(curves.map((c) => [c.family, c.infeasible])).toEqual([
      [undefined, undefined],
      [undefined, true],
      ...[...families].sort().map((f) => [f, f === families[2] ? true : undefined]),
    ]);
    expect(curves[0]!.mean).toHaveLength(feasible.length);
    // Two feasible families share the window: the newest four of each, and the mean of both.
    expect(curves[0]!.balanced).toEqual({ families: 2, each: 4 });
    feasible.forEach((_, i) => {
      const rates = families.slice(0, 2).flatMap((f) => {
        const of = feasible
          .slice(0, i + 1)
          .filter((t) => t.family === f)
          .slice(-4);
        return of.length > 0 ? [of.filter((t) => t.reward === 1).length / of.length] : [];
      });
      expect(curves[0]!.mean[i]).toBeCloseTo(rates.reduce((a, b) => a + b, 0) / rates.length, 4);
      expect(curves[0]!.low[i]).toBeLessThanOrEqual(curves[0]!.mean[i]!);
      expect(curves[0]!.high[i]).toBeGreaterThanOrEqual(curves[0]!.mean[i]!);
    });
    const first = curves.find((c) => c.family === families[0])!,
      own = ended.filter((t) => t.family === families[0]);
    own.forEach((_, i) => {
      const of = own.slice(Math.max(0, i - 7), i + 1),
        w = wilson(of.filter((t) => t.reward === 1).length, of.length);
      [first.mean[i]!, first.low[i]!, first.high[i]!].forEach((x, k) =>
        expect(x).toBeCloseTo([w.rate, w.low, w.high][k]!, 4),
      );
    });
    expect(curves[1]!.mean).toHaveLength(ended.length - feasible.length);
  });

  it('gives metrics by name', async () => {
    const [loss, none] = await series(run, ['update.loss', 'no.such'], 2000);
    expect(loss!.value).toHaveLength(truth.updates);
    expect(loss!.version).toEqual(Array.from({ length: truth.updates }, (_, i) => i + 2));
    expect(none).toEqual({ name: 'no.such', at: [], value: [] });
  });

  it('shows lanes in a window, merges what is thinner than a pixel, and keeps syncs', async () => {
    const fine = await lanes(run, { width: 20_000 }),
      spans = fine.lanes.flatMap((l) => l.what);
    expect(fine.lanes.map((l) => l.id)).toEqual(['d1', 'd2', 'd3', 'd4', 'replica-1', 'trainer']);
    expect(spans).toContain('decide');
    expect(fine.syncs).toHaveLength(truth.updates);
    expect(fine.syncs[0]).toMatchObject({ lane: 'replica-1', ms: 15, version: 2 });
    const coarse = await lanes(run, { width: 50, from: fine.from, to: fine.to });
    expect(coarse.merged).toBe(true);
    expect(coarse.lanes.flatMap((l) => l.what).length).toBeLessThan(spans.length / 2);
    for (const l of coarse.lanes) expect(l.start).toEqual([...l.start].sort((a, b) => a - b));
    const part = await lanes(run, { width: 1000, from: fine.from, to: fine.from + 1000 });
    expect(part.lanes.every((l) => l.start.every((s, i) => s <= fine.from + 1000 && s + l.ms[i]! >= fine.from))).toBe(
      true,
    );
    // A day on few pixels is told by minutes, and no minute is busier than it is long.
    const day = await lanes(run, { width: 100, from: fine.to - 86_400_000, to: fine.to });
    expect(day.lanes.map((l) => l.id)).toEqual(fine.lanes.map((l) => l.id));
    expect(day.syncs).toHaveLength(truth.updates);
    const busy = (x: typeof fine, id: string) => x.lanes.find((l) => l.id === id)!.ms.reduce((a, b) => a + b, 0);
    expect(busy(day, 'd1')).toBeCloseTo(busy(fine, 'd1'), -3);
  });

  it('shows what curation did', async () => {
    const c = await curationView(run, facts);
    expect(c.charts.map((x) => x.id)).toEqual([
      'dynamicRollouts.size',
      'dynamicLength.cap',
      'highEntropy.entropy',
      'highEntropy.kept',
      'pool.injections',
      'staleness.lag',
    ]);
    const sizes = dataOf(c, 'dynamicRollouts.size', 'families'),
      entropy = dataOf(c, 'highEntropy.entropy', 'histogram'),
      kept = dataOf(c, 'highEntropy.kept', 'series');
    expect(sizes.families.flatMap((g) => g.value)).toHaveLength(30);
    expect(entropy.mark?.at).toBe(0.2);
    expect(Math.min(...kept.value)).toBeGreaterThan(0.5);
    expect(kept.value.reduce((a, b) => a + b, 0) / kept.value.length).toBeGreaterThan(0.8);
    expect(kept.value).toHaveLength(truth.updates);
    expect(entropy.counts.reduce((a, b) => a + b, 0)).toBe(
      truth.told.filter((t) => t.outcome !== 'running').reduce((a, t) => a + t.steps, 0),
    );
    expect(c.tis?.counts[3]).toBe(3 * Math.min(8, truth.updates));
    const staleness = dataOf(c, 'staleness.lag', 'bars');
    expect(staleness.counts.map((n) => n > 0)).toEqual([true, true, true]);
    expect(staleness.behind).toEqual({ by: 'lag' });
  });
});
