/** The filter of the Trajectories view: kept in workspace state, shown in words, edited piece by piece. */
import type { OutcomeKind, TrajectoryFilter, TrajectoryRow, TrajectorySort } from '../../runtime/protocol/types.js';
import { t } from '../words.js';

export type ViewFilter = Pick<
  TrajectoryFilter,
  'outcome' | 'family' | 'provenance' | 'version' | 'tag' | 'annotated' | 'reviewed' | 'assisted' | 'text'
>;
export const outcomes: readonly OutcomeKind[] = ['success', 'failure', 'error', 'running'];
export const provenances: readonly TrajectoryRow['provenance'][] = [
  'rollout',
  'human',
  'imported',
  'oracle',
  'probe',
  'hindsight',
];
export const sorts: readonly TrajectorySort[] = ['newest', 'oldest', 'longest', 'entropy', 'reward'];

export const isEmpty = (f: ViewFilter): boolean => Object.values(f).every((x) => x === undefined);

/** Stored state as a filter, without invalid parts. */
export function parseFilter(x: unknown): ViewFilter {
  if (typeof x !== 'object' || x === null) return {};
  const s = x as Record<string, unknown>;
  const outcome = Array.isArray(s['outcome']) ? outcomes.filter((o) => (s['outcome'] as unknown[]).includes(o)) : [];
  const provenance = Array.isArray(s['provenance'])
    ? provenances.filter((o) => (s['provenance'] as unknown[]).includes(o))
    : [];
  const version =
    typeof s['version'] === 'object' && s['version'] !== null ? (s['version'] as Record<string, unknown>) : {};
  const whole = (v: unknown): v is number => Number.isSafeInteger(v) && (v as number) >= 0;
  const bounds = {
    min: whole(version['min']) ? version['min'] : undefined,
    max: whole(version['max']) ? version['max'] : undefined,
  };
  return clean({
    outcome,
    provenance,
    version: bounds,
    annotated: typeof s['annotated'] === 'boolean' ? s['annotated'] : undefined,
    reviewed: typeof s['reviewed'] === 'boolean' ? s['reviewed'] : undefined,
    assisted: typeof s['assisted'] === 'boolean' ? s['assisted'] : undefined,
    family: typeof s['family'] === 'string' ? s['family'] : undefined,
    tag: typeof s['tag'] === 'string' ? s['tag'] : undefined,
    text: typeof s['text'] === 'string' ? s['text'] : undefined,
  });
}
/** The filter without the parts that filter nothing. */
export function clean(f: ViewFilter): ViewFilter {
  return {
    outcome: f.outcome?.length ? f.outcome : undefined,
    family: f.family || undefined,
    provenance: f.provenance?.length ? f.provenance : undefined,
    version: f.version?.min !== undefined || f.version?.max !== undefined ? f.version : undefined,
    tag: f.tag || undefined,
    annotated: f.annotated,
    reviewed: f.reviewed,
    assisted: f.assisted,
    text: f.text || undefined,
  };
}
/** "3", "3-7", "3-", "-7" as bounds; undefined when it is none of these. */
export function parseVersions(s: string): { min?: number; max?: number } | undefined {
  const m = /^\s*(\d*)\s*(-?)\s*(\d*)\s*$/.exec(s);
  if (!m) return undefined;
  const [, from, dash, to] = m;
  if (!dash) return from ? { min: Number(from), max: Number(from) } : {};
  if (from && to && Number(from) > Number(to)) return undefined;
  return { min: from ? Number(from) : undefined, max: to ? Number(to) : undefined };
}
export function versionsText(v: ViewFilter['version']): string {
  if (!v || (v.min === undefined && v.max === undefined)) return '';
  return v.min === v.max ? String(v.min) : `${v.min ?? ''}-${v.max ?? ''}`;
}

export const outcomeWord = (o: OutcomeKind): string =>
  ({ success: t('success'), failure: t('failure'), error: t('error'), running: t('running') })[o];
export const sortWord = (s: TrajectorySort): string =>
  ({
    newest: t('newest first'),
    oldest: t('oldest first'),
    longest: t('most steps first'),
    entropy: t('highest entropy first'),
    reward: t('highest reward first'),
  })[s];
export const originWord = (o: TrajectoryRow['provenance']): string =>
  ({
    rollout: t('by the policy'),
    probe: t('evaluation'),
    oracle: t('scripted'),
    human: t('human'),
    imported: t('imported'),
    hindsight: t('relabelled'),
  })[o];
export const annotatedWord = (yes: boolean): string => (yes ? t('annotated') : t('not annotated'));
export const reviewedWord = (yes: boolean): string => (yes ? t('reviewed') : t('not reviewed'));
export const assistedWord = (yes: boolean): string => (yes ? t('assisted') : t('not assisted'));
/** The filter in a few words, for the view's description. */
export function filterWords(f: ViewFilter): string {
  return [
    ...(f.outcome ? [f.outcome.map(outcomeWord).join(', ')] : []),
    ...(f.family ? [f.family] : []),
    ...(f.provenance ? [f.provenance.map(originWord).join(', ')] : []),
    ...(f.version ? [t('version {0}', versionsText(f.version))] : []),
    ...(f.tag ? [`#${f.tag}`] : []),
    ...(f.annotated === undefined ? [] : [annotatedWord(f.annotated)]),
    ...(f.reviewed === undefined ? [] : [reviewedWord(f.reviewed)]),
    ...(f.assisted === undefined ? [] : [assistedWord(f.assisted)]),
    ...(f.text ? [`"${f.text}"`] : []),
  ].join(' · ');
}
