import { activities, type ActivityName } from '../domain/index.js';
import type { PolicyVersion } from '../domain/index.js';
import type { PoolEvent } from '../cluster/types.js';
import type { EventOf } from '../data/events.js';
import { MOST_SPAN_MS } from '../data/store/recordChecks.js';
import type { EpisodePhase, ModelPoolEvent, SchedulerEvent } from '../rollout/types.js';

type SpansEvent = EventOf<'spans'>;
interface Span {
  readonly what: ActivityName;
  readonly start: number;
  readonly ms: number;
  readonly rollout: string;
}
interface Lane {
  readonly kind: SpansEvent['kind'];
  version: PolicyVersion | undefined;
  spans: Span[];
  open?: { what: ActivityName; since: number; rollout: string } | undefined;
}

export const activityOf: Readonly<Record<EpisodePhase, ActivityName>> = {
  setup: 'setup',
  observe: 'observe',
  decide: 'decide',
  perform: 'act',
  settle: 'settle',
  verify: 'verify',
};
/**
 * A lane's record is written when it holds this many spans or its oldest span is this old: a record costs 270 bytes, a
 * span 10.
 */
const FLUSH_SPANS = 64,
  FLUSH_MS = 3000;
/** Most rollouts that a record lists; index 255 means none. */
const MAX_ROLLOUTS = 255;

/**
 * Gathers the work of desktops, replicas and the trainer from events into compact journal records of dozens of spans.
 * Pure except for `write`; times are ms since the epoch.
 */
export class SpanRecorder {
  readonly #write: (e: SpansEvent) => void;
  readonly #lanes = new Map<string, Lane>();
  constructor(write: (e: SpansEvent) => void) {
    this.#write = write;
  }

  onScheduler(e: SchedulerEvent): void {
    if (e.type !== 'lane') return;
    const lane = this.#lane(e.desktop, 'desktop');
    this.#close(lane, e.at);
    if (e.phase !== 'idle' && e.phase !== 'released')
      lane.open = { what: activityOf[e.phase], since: e.at, rollout: e.rollout ?? '' };
    if (lane.spans.length >= FLUSH_SPANS) this.#flush(e.desktop, lane);
  }

  onPool(e: PoolEvent): void {
    if (e.type !== 'state') return;
    const lane = this.#lane(e.desktop, 'desktop');
    if (e.state === 'resetting') {
      this.#close(lane, e.at);
      lane.open = { what: 'reset', since: e.at, rollout: '' };
    } else if (lane.open?.what === 'reset') this.#close(lane, e.at);
    if (e.state === 'stopped' || e.state === 'broken') {
      this.#close(lane, e.at);
      this.#flush(e.desktop, lane);
    }
  }

  onModels(e: ModelPoolEvent): void {
    if (e.type === 'decided')
      this.#add(e.replica, 'replica', { what: 'decide', start: e.start, ms: e.ms, rollout: e.session }, e.version);
    if (e.type !== 'phase') return;
    const lane = this.#lane(e.replica, 'replica');
    if (e.phase === 'draining' || (e.phase === 'swapping' && !lane.open))
      lane.open = { what: 'sync', since: e.at, rollout: '' };
    else if (e.phase !== 'swapping' && lane.open) {
      const { since } = lane.open;
      lane.open = undefined;
      if (e.phase === 'admitting')
        this.#add(e.replica, 'replica', { what: 'sync', start: since, ms: e.at - since, rollout: '' }, e.version);
    }
  }

  /** An update of a large model takes minutes: it is written as it goes on. */
  trainerBegins(what: 'update' | 'imitate', at: number): void {
    const lane = this.#lane('trainer', 'trainer');
    // The version it makes is known only at its end.
    lane.version = undefined;
    lane.open = { what, since: at, rollout: '' };
  }
  /** The trainer has made this version; undefined: it failed. */
  trainerEnds(at: number, version: PolicyVersion | undefined): void {
    const lane = this.#lane('trainer', 'trainer'),
      { open } = lane;
    lane.open = undefined;
    if (!open) return;
    const span = { what: open.what, start: open.since, ms: Math.max(0, at - open.since), rollout: '' };
    this.#add('trainer', 'trainer', span, version);
    this.#flush('trainer', lane);
  }

  /** Writes what has waited long enough, of what goes on as well; with `all`, at the end of the run, every span. */
  flush(now: number, all = false): void {
    for (const [id, lane] of this.#lanes) {
      this.#writeOpen(lane, now);
      if (all || (lane.spans.length > 0 && now - lane.spans[0]!.start > FLUSH_MS)) {
        if (all) this.#close(lane, now);
        this.#flush(id, lane);
      }
    }
  }
  /** Writes the beginning of a long span, until now: readers join it with the rest. */
  #writeOpen(lane: Lane, now: number): void {
    const { open } = lane;
    if (!open || lane.kind === 'replica' || now - open.since <= FLUSH_MS) return;
    this.#close(lane, now);
    lane.open = { ...open, since: now };
  }

  #lane(id: string, kind: Lane['kind']): Lane {
    let lane = this.#lanes.get(id);
    if (!lane) this.#lanes.set(id, (lane = { kind, version: undefined, spans: [] }));
    return lane;
  }
  #close(lane: Lane, at: number): void {
    const o = lane.open;
    lane.open = undefined;
    // An unfinished sync of a replica is not recorded.
    if (o && lane.kind !== 'replica')
      lane.spans.push({ what: o.what, start: o.since, ms: Math.max(0, at - o.since), rollout: o.rollout });
  }
  #add(id: string, kind: Lane['kind'], span: Span, version: PolicyVersion | undefined): void {
    const lane = this.#lane(id, kind);
    if (lane.version !== version || lane.spans.length >= FLUSH_SPANS) this.#flush(id, lane);
    lane.version = version;
    lane.spans.push(span);
  }

  #flush(id: string, lane: Lane): void {
    // After the clock was set by years, drops spans that nobody can have worked on for so long, and that no reader
    // would accept.
    const newest = Math.max(...lane.spans.map((s) => s.start)),
      spans = lane.spans.filter((s) => s.ms <= MOST_SPAN_MS && newest - s.start <= MOST_SPAN_MS);
    lane.spans = [];
    if (spans.length === 0) return;
    const t0 = Math.min(...spans.map((s) => s.start)),
      rollouts = [...new Set(spans.map((s) => s.rollout).filter((r) => r !== ''))].slice(0, MAX_ROLLOUTS);
    this.#write({
      type: 'spans',
      lane: id,
      kind: lane.kind,
      t0,
      rollouts,
      version: lane.version,
      what: Uint8Array.from(spans, (s) => activities.indexOf(s.what)),
      start: Float32Array.from(spans, (s) => s.start - t0),
      ms: Float32Array.from(spans, (s) => Math.max(0, s.ms)),
      of: Uint8Array.from(spans, (s) => {
        const i = rollouts.indexOf(s.rollout);
        return i < 0 ? MAX_ROLLOUTS : i;
      }),
    });
  }
}
