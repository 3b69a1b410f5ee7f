/** The inspector's state and how events change it; pure, no DOM. */
import type { AnnotationView, RunEvent, StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import { revised } from '../annotator/apply.js';
import type { DaemonState, HostError, InputOf } from '../protocol.js';
import { t } from '../ui/words.js';

export type InspectorInput = InputOf<'inspector'>;
export type Shot = 'before' | 'after';
/** The meaning of the colours of an answer's tokens. */
export type Colouring = 'entropy' | 'weight';

export interface State {
  readonly input: InspectorInput;
  /** The shown trajectory: as recorded, or as annotated. */
  readonly view?: TrajectoryView;
  readonly recorded?: TrajectoryView;
  /** While annotating: what people said of it, with the edits that are on their way. */
  readonly annotation?: AnnotationView;
  readonly loading: boolean;
  readonly error?: HostError;
  /** Position in `view.steps`; -1 when there are none. */
  readonly selected: number;
  /** Whether the selection moves on with the newest step. */
  readonly pinned: boolean;
  readonly shot: Shot;
  /** Whether the policy's places are shown over the screenshot. */
  readonly heat: boolean;
  readonly colour: Colouring;
  readonly daemon: { readonly state: DaemonState; readonly error?: HostError };
  /** Something changed that only the daemon knows (report, mask, weights): request it again. */
  readonly stale: boolean;
}

/** Choices that survive hiding and reload. */
export interface SavedView {
  readonly shot?: Shot;
  readonly heat?: boolean;
  readonly colour?: Colouring;
  readonly pinned?: boolean;
}

export type Change =
  | { readonly type: 'show'; readonly input: InspectorInput }
  | { readonly type: 'loading' }
  | { readonly type: 'loaded'; readonly view: TrajectoryView }
  | { readonly type: 'failed'; readonly error: HostError }
  | { readonly type: 'events'; readonly events: readonly RunEvent[]; readonly ended?: boolean }
  | { readonly type: 'select'; readonly at: number }
  | { readonly type: 'follow' }
  | { readonly type: 'shot'; readonly shot: Shot }
  | { readonly type: 'heat'; readonly on: boolean }
  | { readonly type: 'colour'; readonly by: Colouring }
  /** Annotate mode; `queue`: within the review queue. */
  | { readonly type: 'annotate'; readonly on: boolean; readonly queue?: boolean }
  | { readonly type: 'annotation'; readonly annotation?: AnnotationView }
  | { readonly type: 'daemon'; readonly state: DaemonState; readonly error?: HostError };

export function initial(input: InspectorInput, daemon: DaemonState, kept: SavedView = {}): State {
  const s: State = {
    input,
    loading: !input.document,
    selected: -1,
    pinned: kept.pinned ?? input.step === undefined,
    shot: kept.shot ?? 'before',
    heat: kept.heat ?? false,
    colour: kept.colour ?? 'entropy',
    daemon: { state: daemon },
    stale: false,
  };
  return input.document ? reduce(s, { type: 'loaded', view: input.document }) : s;
}

export function reduce(s: State, c: Change): State {
  switch (c.type) {
    case 'show':
      return {
        ...initial(c.input, s.daemon.state, { shot: 'before', heat: s.heat, colour: s.colour }),
        daemon: s.daemon,
      };
    case 'loading':
      return { ...s, loading: !s.view, stale: false };
    case 'loaded':
      return loaded(s, c.view);
    case 'failed':
      return { ...s, loading: false, stale: false, error: c.error };
    case 'events':
      return withEvents(s, c.events, c.ended ?? false);
    case 'select':
      return select(s, c.at);
    case 'follow':
      return s.view ? { ...s, pinned: true, selected: s.view.steps.length - 1, shot: 'before' } : s;
    case 'shot':
      return { ...s, shot: c.shot };
    case 'heat':
      return { ...s, heat: c.on };
    case 'colour':
      return { ...s, colour: c.by };
    case 'annotate':
      return { ...s, input: { ...s.input, annotate: c.on, queue: c.on && (c.queue ?? s.input.queue ?? false) } };
    case 'annotation':
      return annotated(s, c.annotation);
    case 'daemon':
      return { ...s, daemon: { state: c.state, error: c.error } };
  }
}

/** Position of the step with this index, or of the nearest one before it; -1 in an empty list. */
export function positionOf(steps: readonly StepView[], index: number): number {
  let lo = 0,
    hi = steps.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (steps[mid]!.index <= index) lo = mid + 1;
    else hi = mid;
  }
  return Math.max(steps.length ? 0 : -1, lo - 1);
}

function select(s: State, at: number): State {
  if (!s.view || s.view.steps.length === 0) return s;
  const last = s.view.steps.length - 1,
    selected = Math.max(0, Math.min(last, at));
  // Going to the newest step of a live rollout is following it; any other step is looking back.
  return {
    ...s,
    selected,
    pinned: s.view.live && selected === last,
    ...(selected === s.selected ? {} : { shot: 'before' as const }),
  };
}

function loaded(s: State, view: TrajectoryView): State {
  const same = s.recorded?.row.rollout === view.row.rollout ? s.recorded : undefined;
  // Steps that arrived as events while the answer was under way stay.
  const newer = same ? same.steps.filter((x) => x.index > (view.steps.at(-1)?.index ?? -1)) : [];
  const recorded = {
    ...view,
    steps: newer.length ? [...view.steps, ...newer] : view.steps,
    live: view.live && (same?.live ?? true),
  };
  const shown = onShow(recorded, s.annotation),
    { steps } = shown,
    last = steps.length - 1;
  const index = same ? stepShown(s) : s.input.step;
  const pinned = view.live && s.pinned;
  // A trajectory that is over opens at its start, a live one at its end.
  const selected = pinned ? last : index === undefined ? Math.min(0, last) : positionOf(steps, index);
  return { ...s, recorded, view: shown, loading: false, stale: false, error: undefined, selected, pinned };
}

/** Index of the step on show. */
export const stepShown = (s: Pick<State, 'view' | 'selected'>): number | undefined => s.view?.steps[s.selected]?.index;

function withEvents(s: State, events: readonly RunEvent[], ended: boolean): State {
  if (!s.view || !s.recorded) return s;
  const { view: recorded, stale } = applyEvents(s.recorded, events, ended);
  if (recorded === s.recorded && !stale) return s;
  const index = stepShown(s),
    view = recorded === s.recorded ? s.view : onShow(recorded, s.annotation);
  const selected = s.pinned
    ? view.steps.length - 1
    : index === undefined
      ? Math.min(0, view.steps.length - 1)
      : positionOf(view.steps, index);
  return {
    ...s,
    recorded,
    view,
    stale: s.stale || stale,
    selected,
    pinned: s.pinned && view.live,
    ...(selected === s.selected ? {} : { shot: 'before' as const }),
  };
}

/** Annotations of a trajectory that is over; those of another one, or of one that still runs, are not shown. */
const onShow = (recorded: TrajectoryView, a: AnnotationView | undefined): TrajectoryView =>
  a && !recorded.live && a.rollout === recorded.row.rollout ? revised(recorded, a) : recorded;
/** The selected step stays, or the nearest remaining one before it. */
function annotated(s: State, annotation: AnnotationView | undefined): State {
  if (annotation === s.annotation) return s;
  if (!s.recorded || !s.view) return { ...s, annotation };
  const view = onShow(s.recorded, annotation),
    index = stepShown(s);
  return {
    ...s,
    annotation,
    view,
    selected: index === undefined ? Math.min(0, view.steps.length - 1) : positionOf(view.steps, index),
  };
}

/**
 * A trajectory after events of its run; the same object when none is about it. `stale`: only the daemon knows what
 * else changed.
 */
export function applyEvents(
  v: TrajectoryView,
  events: readonly RunEvent[],
  ended: boolean,
): { readonly view: TrajectoryView; readonly stale: boolean } {
  const rollout = v.row.rollout;
  let { row, group, live } = v,
    steps: StepView[] | undefined,
    stale = false;
  for (const e of events) {
    if (e.type === 'step' && e.rollout === rollout) {
      insert((steps ??= [...v.steps]), e.step);
      stale ||= e.step.prompt === 'pending';
    } else if (e.type === 'started' && e.row.rollout === rollout) row = e.row;
    else if (e.type === 'ended' && e.row.rollout === rollout) {
      row = e.row;
      live = false;
      stale = true;
    } else if (e.type === 'group' && e.group.members.some((m) => m.rollout === rollout)) {
      group = e.group;
      stale = true;
    } else if (e.type === 'trained' && e.rollouts.includes(rollout)) stale = true;
    else if (e.type === 'closed') live = false;
  }
  if (ended && live) {
    live = false;
    stale = true;
  }
  if (!steps && row === v.row && group === v.group && live === v.live) return { view: v, stale };
  return { view: { ...v, row, live, steps: steps ?? v.steps, group }, stale };
}

/** Puts a step in its place; the screen it starts on is the screen after the step before it. */
function insert(steps: StepView[], step: StepView): void {
  const at = positionOf(steps, step.index),
    there = steps[at];
  const put = there === undefined || step.index < there.index ? 0 : there.index === step.index ? at : at + 1;
  if (there?.index === step.index) steps[put] = { ...there, ...step };
  else steps.splice(put, 0, step);
  const before = steps[put - 1],
    after = steps[put + 1];
  if (before && !before.after && before.index === step.index - 1) steps[put - 1] = { ...before, after: step.frame };
  if (after && !step.after && after.index === step.index + 1) steps[put] = { ...steps[put]!, after: after.frame };
}

/** Words and remedy for a connection that is not there; nothing when all is well or nothing needs it. */
export function connectionWords(
  s: State,
): { readonly words: string; readonly action?: 'startRuntime' | 'showLog'; readonly busy: boolean } | undefined {
  if (s.input.document || s.daemon.state === 'ready') return undefined;
  const why = s.daemon.error ? ` ${s.daemon.error.message} ${s.daemon.error.remedy}`.trimEnd() : '',
    also = (words: string): string => words + why;
  switch (s.daemon.state) {
    case 'stopped':
      return {
        words: `${also(t('The runtime is stopped.'))} ${t('Showing last loaded data.')}`,
        action: 'startRuntime',
        busy: false,
      };
    case 'starting':
    case 'attaching':
      return { words: t('Connecting to the runtime…'), busy: true };
    case 'reconnecting':
      return {
        words: [
          t('The connection to the runtime was lost; reconnecting.'),
          s.view?.live ? t('New steps appear when the connection is back.') : '',
        ]
          .filter(Boolean)
          .join(' '),
        busy: true,
      };
    case 'incompatible':
      return { words: also(t('A runtime of another version is running.')), action: 'showLog', busy: false };
    case 'failed':
      return { words: also(t('The runtime could not be started.')), action: 'showLog', busy: false };
  }
}
