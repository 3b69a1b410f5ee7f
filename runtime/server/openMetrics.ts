import type { Ledger, RunStatus } from '../protocol/types.js';

/** A run's newest status, as it was broadcast. */
export interface Told {
  readonly run: string;
  readonly status: RunStatus;
  readonly ledger: Ledger;
}
interface Family {
  readonly name: string;
  readonly type: 'gauge' | 'counter';
  readonly help: string;
  readonly unit?: string;
  /** Values with their further labels. */
  readonly of: (t: Told) => readonly (readonly [Readonly<Record<string, string>>, number | undefined])[];
}
const one =
  (value: (t: Told) => number | undefined): Family['of'] =>
  (t) => [[{}, value(t)]];
const families: readonly Family[] = [
  {
    name: 'dart_run_state',
    type: 'gauge',
    help: 'State and phase of the run that is active; always 1.',
    of: (t) => [[{ state: t.status.state, phase: t.status.phase }, 1]],
  },
  {
    name: 'dart_run_elapsed_seconds',
    unit: 'seconds',
    type: 'gauge',
    help: 'Time the run has worked.',
    of: one((t) => t.status.elapsedMs / 1000),
  },
  {
    name: 'dart_run_budget_seconds',
    unit: 'seconds',
    type: 'gauge',
    help: 'Budget of time, where there is one.',
    of: one((t) => (t.status.budgetMs === undefined ? undefined : t.status.budgetMs / 1000)),
  },
  {
    name: 'dart_policy_version',
    type: 'gauge',
    help: 'Newest version of the policy.',
    of: one((t) => t.status.version),
  },
  {
    name: 'dart_rollouts_begun',
    type: 'counter',
    help: 'Training rollouts that began on a desktop.',
    of: one((t) => t.ledger.begun ?? t.status.rollouts),
  },
  {
    name: 'dart_rollouts_trained',
    type: 'counter',
    help: 'Training rollouts that were trained on.',
    of: one((t) => t.ledger.trained),
  },
  {
    name: 'dart_rollouts_retired',
    type: 'counter',
    help: 'Training rollouts that will not be trained on, by reason.',
    of: (t) => Object.entries(t.ledger.retired).map(([reason, n]) => [{ reason }, n] as const),
  },
  {
    name: 'dart_rollouts_running',
    type: 'gauge',
    help: 'Rollouts on a desktop now.',
    of: one((t) => t.status.running),
  },
  {
    name: 'dart_groups_waiting',
    type: 'gauge',
    help: 'Groups that wait for the trainer.',
    of: one((t) => t.status.waitingGroups),
  },
  {
    name: 'dart_rollout_errors',
    type: 'counter',
    help: 'Rollouts that ended by a fault.',
    of: one((t) => t.status.errors),
  },
  {
    name: 'dart_rollouts_per_hour',
    type: 'gauge',
    help: 'Training rollouts ended per hour, over the last two minutes.',
    of: one((t) => t.status.rolloutsPerHour),
  },
  {
    name: 'dart_steps_per_minute',
    type: 'gauge',
    help: 'Actions on desktops per minute, over the last two minutes.',
    of: one((t) => t.status.stepsPerMinute),
  },
  {
    name: 'dart_trained_actions_per_minute',
    type: 'gauge',
    help: 'Actions trained on per minute of reinforcement learning since it began or was resumed, without pauses.',
    of: one((t) => t.status.trainedActionsPerMinute),
  },
  {
    name: 'dart_success_ratio',
    unit: 'ratio',
    type: 'gauge',
    help: 'Success of the newest 64 training rollouts, whatever tasks they were of.',
    of: one((t) => t.status.success),
  },
  {
    name: 'dart_busy_ratio',
    unit: 'ratio',
    type: 'gauge',
    help: 'Share of time busy; of model servers, answers under way of the policy.vlm.concurrency that each may handle.',
    of: ({ status: s }) => [
      [{ part: 'desktops' }, s.desktopUtilisation],
      [{ part: 'replicas' }, s.replicaUtilisation],
      [{ part: 'trainer' }, s.trainerUtilisation],
    ],
  },
];

const escaped = (s: string): string => s.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
const labels = (of: Readonly<Record<string, string>>): string =>
  `{${Object.entries(of)
    .map(([k, v]) => `${k}="${escaped(v)}"`)
    .join(',')}}`;

/** OpenMetrics 1.0 (openmetrics.io): a family a metric, a sample a run; what is not known is left out. Pure. */
export function openMetricsText(all: readonly Told[]): string {
  const lines = families.flatMap((f) => {
    const samples = all.flatMap((t) =>
      f
        .of(t)
        .flatMap(([more, v]) =>
          v === undefined || !Number.isFinite(v)
            ? []
            : [
                `${f.name}${f.type === 'counter' ? '_total' : ''}${labels({ run: t.run.split(/[\\/]/).at(-1) ?? t.run, ...more })} ${v}`,
              ],
        ),
    );
    return [
      `# TYPE ${f.name} ${f.type}`,
      ...(f.unit ? [`# UNIT ${f.name} ${f.unit}`] : []),
      `# HELP ${f.name} ${f.help}`,
      ...samples,
    ];
  });
  return `${lines.join('\n')}\n# EOF\n`;
}
