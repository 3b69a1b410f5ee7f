/** The steps of a run between its first evaluation and its last, and what is known of its end. Pure. */
import type { PhaseSpan } from '../../runtime/protocol/types.js';
import { t } from '../ui/words.js';
import { isLive, isOver, last, rolloutsBegun, type Model } from './model.js';

export type StepState = 'done' | 'now' | 'next' | 'skipped';
type StepName = 'untrained' | PhaseSpan['phase'] | 'evaluation';
export interface RunStep {
  readonly name: StepName;
  readonly label: string;
  readonly says: string;
  readonly state: StepState;
  /** How long it took, ms. */
  readonly took?: number;
}
const words: Readonly<Record<StepName, readonly [string, string]>> = {
  untrained: [
    t('Untrained'),
    t('The policy that the run starts from is evaluated, so that there is something to compare with.'),
  ],
  reading: [t('Reading'), t('Reading lessons on screens full of words, before any task is shown.')],
  demonstrations: [t('Demonstrations'), t('Scripts show the training tasks.')],
  'warm start': [t('Warm start'), t('The policy imitates the demonstrations.')],
  training: [t('RL'), t('Reinforcement learning: rollouts, curation, updates.')],
  evaluation: [t('Evaluation'), t('The trained policy is evaluated on the run’s evaluation tasks.')],
};
const order: readonly StepName[] = ['untrained', 'reading', 'demonstrations', 'warm start', 'training', 'evaluation'];

/** A value of the run's configuration by its path; undefined where a run of another version has none. */
export function option(m: Model, path: string): unknown {
  let at: unknown = m.detail?.config;
  for (const k of path.split('.'))
    at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[k] : undefined;
  return at;
}
const some = (m: Model, path: string): boolean => Number(option(m, path) ?? 0) > 0;

/** The steps that the run file asks for or that happened, in their order; none of what is only a collection. */
export function stepsOf(m: Model): RunStep[] {
  if (!m.detail || m.detail.summary.collection) return [];
  const phases = m.detail.timeline.phases,
    began = new Map<StepName, number>(phases.map((p) => [p.phase, p.from])),
    planned: Readonly<Record<StepName, boolean>> = {
      untrained: some(m, 'evaluation.episodes') && option(m, 'evaluation.untrained') !== false,
      reading: some(m, 'warmStart.reading.steps'),
      demonstrations: some(m, 'warmStart.demonstrations'),
      'warm start': some(m, 'warmStart.steps'),
      training: true,
      evaluation: some(m, 'evaluation.episodes'),
    };
  const first = phases[0]?.from ?? Infinity,
    happened = (name: StepName): boolean =>
      name === 'untrained'
        ? m.evals.some((e) => e.at < first || e.label === 'untrained')
        : name === 'evaluation'
          ? m.evals.some((e) => e.label === 'final')
          : began.has(name);
  const now = isOver(m) ? undefined : current(m),
    at = now === undefined ? -1 : order.indexOf(now);
  return order
    .filter((name) => planned[name] || happened(name))
    .map((name): RunStep => {
      const place = order.indexOf(name),
        state: StepState =
          name === now ? 'now' : happened(name) || place < at ? 'done' : isOver(m) ? 'skipped' : 'next',
        [label, says] = words[name],
        from = began.get(name),
        next = phases.find((p) => from !== undefined && p.from > from)?.from;
      return {
        name,
        label,
        says,
        state,
        ...(from !== undefined && next !== undefined && state === 'done' ? { took: next - from } : {}),
      };
    });
}
/** The present step of a run that is not over; an evaluation in between belongs to the phase that it interrupts. */
function current(m: Model): StepName | undefined {
  const phase = m.status?.phase,
    newest = m.detail?.timeline.phases.at(-1)?.phase;
  switch (phase) {
    case 'reading':
    case 'demonstrations':
    case 'warm start':
    case 'training':
      return phase;
    case 'evaluating':
      if (newest === undefined) return 'untrained';
      return newest === 'training' && (budgetLeft(m) ?? 1) <= 0 ? 'evaluation' : newest;
    default:
      return newest;
  }
}

/**
 * Time until the budget that is used up first, at the pace of now, ms; undefined where nothing bounds the run or its
 * pace is not known yet.
 */
export const leftMs = (m: Model): number | undefined => (isLive(m) ? budgetLeft(m) : undefined);
function budgetLeft(m: Model): number | undefined {
  const st = m.status;
  if (!st) return undefined;
  const left: number[] = [],
    limits = st.limits ?? { rollouts: option(m, 'budget.rollouts'), updates: option(m, 'budget.updates') },
    rollouts = Number(limits.rollouts ?? NaN),
    updates = Number(limits.updates ?? NaN),
    made = m.series.get('update.loss');
  if (st.budgetMs !== undefined) left.push(st.budgetMs - st.elapsedMs);
  if (Number.isFinite(rollouts) && st.rolloutsPerHour > 0)
    left.push(((rollouts - (rolloutsBegun(m) ?? 0) + (m.ledger?.retired['error'] ?? 0)) / st.rolloutsPerHour) * 3.6e6);
  if (Number.isFinite(updates) && made && made.at.length > 1 && made.version) {
    const done = made.version.at(-1)! - made.version[0]! + 1,
      each = (made.at.at(-1)! - made.at[0]!) / Math.max(1, done - 1);
    left.push((updates - done) * each);
  }
  return left.length > 0 ? Math.max(0, Math.min(...left)) : undefined;
}
/** Step size now: of the newest update, before it as the run file says. */
export const learningRate = (m: Model): number | undefined => {
  const given = option(m, 'trainer.lr');
  return last(m, 'update.lr') ?? (typeof given === 'number' ? given : undefined);
};
