/**
 * The dashboard's model of a run, and how each message changes it. Pure: views compare parts by reference and draw what
 * changed.
 */
import type {
  CurationView,
  EvalPoint,
  JournalDamage,
  Lanes,
  Ledger,
  RunDetail,
  RunEvent,
  RunFootprint,
  RunState,
  RunStatus,
  Series,
  SuccessCurve,
  TaskRow,
} from '../../runtime/protocol/types.js';
import type { DaemonState, HostError } from '../protocol.js';
import { appendLanes, someOf, type Window } from '../ui/lanesMath.js';
import { keepExtremes } from '../ui/chartMath.js';

export interface Model {
  readonly run: string;
  readonly daemon: DaemonState;
  readonly daemonError?: HostError;
  readonly loading: boolean;
  readonly failure?: HostError;
  readonly detail?: RunDetail;
  readonly status?: RunStatus;
  readonly ledger?: Ledger;
  readonly evals: readonly EvalPoint[];
  readonly curves: readonly SuccessCurve[];
  readonly series: ReadonlyMap<string, Series>;
  readonly lanes?: Lanes;
  readonly curation?: CurationView;
  readonly tasks: readonly TaskRow[];
  /** Newest moment known of the run, ms since the epoch. */
  readonly now: number;
  /** The newest warning of the run itself. */
  readonly warning?: string;
  /** Why a part could not be read, by the request that failed last. */
  readonly lacks: ReadonlyMap<string, string>;
  /** The damage of the journal. */
  readonly damage?: JournalDamage;
  /** Disk, policy size, machine. */
  readonly footprint?: RunFootprint;
}
/** Parts that are requested again after events, while they are visible. */
export type Stale = 'curves' | 'curation' | 'tasks' | 'detail';

export type Message =
  | { readonly type: 'open'; readonly run: string; readonly daemon: DaemonState }
  | { readonly type: 'daemon'; readonly state: DaemonState; readonly error?: HostError }
  | { readonly type: 'failed'; readonly error: HostError }
  /** A part could not be read, or without an error could be again; the rest of the page is kept. */
  | { readonly type: 'lacks'; readonly method: string; readonly error?: HostError }
  | { readonly type: 'detail'; readonly detail: RunDetail }
  | { readonly type: 'curves'; readonly curves: readonly SuccessCurve[]; readonly evals: readonly EvalPoint[] }
  | { readonly type: 'series'; readonly series: readonly Series[] }
  | { readonly type: 'lanes'; readonly lanes: Lanes }
  | { readonly type: 'curation'; readonly curation: CurationView }
  | { readonly type: 'footprint'; readonly footprint: RunFootprint }
  | { readonly type: 'checked'; readonly damage?: JournalDamage | undefined }
  | { readonly type: 'tasks'; readonly tasks: readonly TaskRow[] }
  | { readonly type: 'status'; readonly status: RunStatus; readonly ledger: Ledger }
  | { readonly type: 'events'; readonly events: readonly RunEvent[] };

export const emptyModel = (run = '', daemon: DaemonState = 'starting'): Model => ({
  run,
  daemon,
  loading: run !== '',
  evals: [],
  curves: [],
  series: new Map(),
  tasks: [],
  lacks: new Map(),
  now: 0,
});

export function reduce(m: Model, msg: Message): Model {
  switch (msg.type) {
    case 'open':
      return emptyModel(msg.run, msg.daemon);
    case 'daemon':
      return { ...m, daemon: msg.state, daemonError: msg.error };
    case 'failed':
      return { ...m, loading: false, failure: msg.error };
    case 'lacks':
      return { ...m, lacks: lacking(m.lacks, msg.method, msg.error) };
    case 'detail': {
      // An event may be newer than an answer that was under way.
      const { detail } = msg,
        evals = joinEvals(detail.evals, m.evals),
        d = { ...detail, checkpoints: join(detail.checkpoints, m.detail?.checkpoints ?? [], (c) => c.path) };
      return {
        ...m,
        loading: false,
        failure: undefined,
        detail: d,
        status: d.summary.status ?? (m.status && { ...m.status, state: d.summary.state }),
        ledger: d.ledger,
        evals,
        tasks: d.tasks,
        now: Math.max(m.now, d.summary.createdAt, ...evals.map((e) => e.at)),
      };
    }
    case 'curves':
      return {
        ...m,
        curves: msg.curves,
        evals: joinEvals(msg.evals, m.evals),
        now: Math.max(m.now, ...msg.curves.map((c) => c.at.at(-1) ?? 0)),
      };
    case 'series':
      return {
        ...m,
        series: new Map([...m.series, ...msg.series.map((s) => [s.name, s] as const)]),
        now: Math.max(m.now, ...msg.series.map((s) => s.at.at(-1) ?? 0)),
      };
    case 'lanes':
      return { ...m, lanes: rejoin(msg.lanes, m.lanes), now: Math.max(m.now, endOf(msg.lanes.lanes)) };
    case 'curation':
      return { ...m, curation: msg.curation };
    case 'footprint':
      return { ...m, footprint: msg.footprint };
    case 'checked':
      return { ...m, damage: msg.damage };
    case 'tasks':
      return { ...m, tasks: msg.tasks };
    case 'status':
      return { ...m, status: msg.status, ledger: msg.ledger, detail: withState(m.detail, msg.status.state) };
    case 'events':
      return msg.events.reduce(event, m);
  }
}

function event(m: Model, e: RunEvent): Model {
  const next = e.at > m.now ? { ...m, now: e.at } : m;
  switch (e.type) {
    case 'metrics':
      return { ...next, series: appendMetrics(next.series, e) };
    case 'eval':
      return { ...next, evals: joinEvals(next.evals, [e.point]) };
    case 'spans': {
      const end = Math.max(next.now, endOf(e.lanes));
      return { ...next, now: end, lanes: next.lanes && appendLanes(next.lanes, e, end - liveWindowMs) };
    }
    case 'note':
      return e.level === 'info' ? next : { ...next, warning: e.message };
    case 'checkpoint':
    case 'trained':
      return next.detail && e.path !== undefined
        ? {
            ...next,
            detail: { ...next.detail, checkpoints: [...next.detail.checkpoints, { version: e.version, path: e.path }] },
          }
        : next;
    default:
      return next;
  }
}
function lacking(lacks: Model['lacks'], method: string, error: HostError | undefined): Model['lacks'] {
  const next = new Map(lacks);
  if (error) next.set(method, `${error.message} ${error.remedy}`.trim());
  else next.delete(method);
  return next;
}
/** Merges an answer with what is known: nothing that was there disappears. */
function join<T>(answer: readonly T[], known: readonly T[], key: (x: T) => string): readonly T[] {
  const there = new Set(answer.map(key)),
    more = known.filter((x) => !there.has(key(x)));
  return more.length === 0 ? answer : [...answer, ...more];
}
const joinEvals = (answer: readonly EvalPoint[], known: readonly EvalPoint[]): readonly EvalPoint[] =>
  join(answer, known, (e) => `${e.at} ${e.version}`);
/** The parts that a batch of events makes worth asking for again. */
export function staleAfter(events: readonly RunEvent[]): ReadonlySet<Stale> {
  const out = new Set<Stale>();
  for (const e of events) {
    if (e.type === 'ended') {
      out.add('curves');
      out.add('tasks');
    }
    if (e.type === 'group' || e.type === 'trained') out.add('curation');
    if (e.type === 'closed' || e.type === 'eval') out.add('detail');
  }
  return out;
}

const endOf = (lanes: Lanes['lanes']): number =>
  Math.max(0, ...lanes.map((l) => (l.start.at(-1) ?? 0) + (l.ms.at(-1) ?? 0)));
/** Raw spans kept while live; older ones are asked for again when somebody goes back to them. */
const liveWindowMs = 300_000;
/** An answer for a window, and what arrived by event after its end. */
function rejoin(answer: Lanes, known: Lanes | undefined): Lanes {
  if (!known || known.to <= answer.to || known.from > answer.to) return answer;
  // Calls that overlap are told at their end: those that were under way then may have ended since.
  const overlap = answer.concurrency !== undefined,
    tail = known.lanes.map((l) =>
      someOf(l, (start, ms) => (overlap && l.kind === 'replica' ? start + ms : start) >= answer.to),
    );
  return {
    ...appendLanes(answer, { lanes: tail, syncs: known.syncs.filter((s) => s.start >= answer.to) }),
    merged: answer.merged,
  };
}

/** Names of the series the page shows. */
export const seriesNames = [
  'run.rolloutsPerHour',
  'run.stepsPerMinute',
  'run.trainedActionsPerMinute',
  'run.desktopUtilisation',
  'run.replicaUtilisation',
  'run.trainerUtilisation',
  'run.success',
  'run.errors',
  'run.elapsedMs',
  'run.boundRolloutsPerHour',
  'run.boundStepsPerMinute',
  'run.boundTrainedActionsPerMinute',
  'update.loss',
  'update.policyLoss',
  'update.imitationLoss',
  'update.entropy',
  'update.gradNorm',
  'update.ms',
  'update.lr',
  'update.klK1',
  'update.klK3',
  'update.refKl',
  'update.oldKl',
  'update.ess',
  'update.tisMean',
  'update.tisCapped',
  'update.clipLow',
  'update.clipHigh',
  'update.dualClip',
  'update.imitationFactor',
] as const;
export type SeriesName = (typeof seriesNames)[number];
const shown: ReadonlySet<string> = new Set(seriesNames);
const maxPoints = 4000;

function appendMetrics(series: Model['series'], e: Extract<RunEvent, { type: 'metrics' }>): Model['series'] {
  const out = new Map(series);
  for (const [k, value] of Object.entries(e.values)) {
    const name = `${e.source}.${k}`,
      s = out.get(name);
    if (!shown.has(name) || !Number.isFinite(value) || (s && e.at <= (s.at.at(-1) ?? -1))) continue;
    const grown: Series = {
      name,
      at: [...(s?.at ?? []), e.at],
      value: [...(s?.value ?? []), value],
      version: s?.version || !s ? [...(s?.version ?? []), e.version ?? -1] : undefined,
    };
    out.set(name, grown.at.length > maxPoints ? thin(grown) : grown);
  }
  return out;
}
function thin(s: Series): Series {
  const keep = keepExtremes(s.value, maxPoints / 2);
  return {
    name: s.name,
    at: keep.map((i) => s.at[i]!),
    value: keep.map((i) => s.value[i]!),
    version: s.version ? keep.map((i) => s.version![i]!) : undefined,
  };
}
function withState(d: RunDetail | undefined, state: RunState): RunDetail | undefined {
  return d && d.summary.state !== state ? { ...d, summary: { ...d.summary, state } } : d;
}

export const stateOf = (m: Model): RunState | undefined => m.status?.state ?? m.detail?.summary.state;
/** Whether something may still happen in it. */
export const isLive = (m: Model): boolean =>
  ['running', 'paused', 'stopping', 'elsewhere'].includes(stateOf(m) ?? '') && m.daemon === 'ready';
export const last = (m: Model, name: SeriesName): number | undefined => m.series.get(name)?.value.at(-1);
/** Whether it is over: no process works on it, and what it lacks now it will never have unless it is resumed. */
export const isOver = (m: Model): boolean =>
  ['finished', 'stopped', 'failed', 'interrupted'].includes(stateOf(m) ?? '');
/** Over, and only evaluated: nothing was learned or rolled out for training. */
export const evaluationOnly = (m: Model): boolean =>
  isOver(m) && (m.ledger?.generated ?? 0) === 0 && m.evals.length > 0 && (m.detail?.timeline?.phases.length ?? 0) === 0;
/** Rollouts that began: the newest count there is. */
export const rolloutsBegun = (m: Model): number | undefined =>
  isLive(m) ? m.status?.rollouts : (m.ledger?.begun ?? m.detail?.summary.rollouts);
export const wholeRun = (m: Model): Window => {
  const from = m.detail?.summary.createdAt ?? 0;
  return { from, to: Math.max(m.now, from + 1000) };
};
/**
 * The window that the shares of the utilisation card cover; a run that was killed gave them last at its last update.
 * Undefined before RL.
 */
export function measuredWindow(m: Model): (Window & { readonly resumed: boolean }) | undefined {
  const { measured } = m.detail?.timeline ?? {},
    to = measured?.to ?? (isLive(m) ? m.now : (m.series.get('run.desktopUtilisation')?.at.at(-1) ?? 0));
  return measured && to > measured.from ? { ...measured, to } : undefined;
}
export const evalRate = (e: EvalPoint): number | undefined => (e.episodes > 0 ? e.successes / e.episodes : undefined);
/**
 * Width of the lanes' first window of a live run: some fourteen rollouts of a desktop, so that single spans can be told
 * apart. Pure.
 */
export function firstWindowMs(m: Model): number {
  const s = m.status,
    each = s && s.running > 0 && s.rolloutsPerHour > 0 ? (s.running * 3.6e6) / s.rolloutsPerHour : 4000;
  return Math.max(12_000, Math.min(3.6e6, each * 14));
}
