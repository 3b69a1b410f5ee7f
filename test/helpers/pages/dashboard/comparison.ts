/** Runs beside one another as the daemon tells them, made up: three seeds of one configuration, two of another,
 * and one alone, of before tokens were recorded. */
import type { ComparedRun, Comparison } from '../../../../runtime/protocol/types.js';
import { progressOf } from '../../../../runtime/queries/compare.js';
import { makeRun } from './run.js';

const configs = [
  { name: 'quickstart', lr: '0.0003', kl: '0', seeds: [1, 2, 3], minutes: 13.6 },
  { name: 'quickstart', lr: '0.001', kl: '0', seeds: [1, 2], minutes: 20 },
  { name: 'with-kl', lr: '0.0003', kl: '0.1', seeds: [1], minutes: 17 },
] as const;

export function makeComparison(): Comparison {
  const runs = configs.flatMap((c, group) =>
    c.seeds.map((seed): ComparedRun => {
      const m = makeRun({ seed: seed + 10 * group, minutes: c.minutes, state: group === 2 ? 'running' : 'finished' }),
        { summary } = m.detail,
        overall = m.curves[0]!,
        updates = m.series.find((s) => s.name === 'update.loss')!.at;
      return {
        run: `/work/runs/${c.name}-${group}-s${seed}`,
        id: `${c.name}-${group}-s${seed}`,
        name: c.name,
        createdAt: m.createdAt + group * 3_600_000 + seed * 60_000,
        state: summary.state,
        seed,
        version: summary.version,
        rollouts: summary.rollouts,
        group,
        progress: progressOf({
          from: m.createdAt,
          to: m.now,
          timeline: { outages: [] },
          ended: overall.at,
          trained: updates.map((at) => ({ at, steps: 480, ...(group === 2 ? {} : { tokens: 960 }) })),
        }),
        success: overall,
        evals: m.detail.evals.map((e) => ({ ...e, perFamily: {} })),
        tasks: m.tasks.map((k, i) => (i === 4 && group === 2 ? { ...k, evaluation: undefined } : k)),
        series: [...m.series, { name: 'sync.drainMs', at: updates, value: updates.map((_, i) => 20 + (i % 7)) }],
      };
    }),
  );
  const perRun = (of: (c: (typeof configs)[number]) => string): string[] =>
    configs.flatMap((c) => c.seeds.map(() => of(c)));
  return {
    runs,
    config: [
      { key: 'trainer.lr', values: perRun((c) => c.lr) },
      { key: 'trainer.klBeta', values: perRun((c) => c.kl) },
      {
        key: 'tasks.families',
        values: perRun((c) => (c.name === 'with-kl' ? '["desk/press-button","desk/form-one"]' : '')),
      },
    ],
    missing: [],
  };
}
