import { activities } from '../../../runtime/domain/index.js';
import type { JournalEvent } from '../../../runtime/data/events.js';
import { isError } from '../../../runtime/data/events.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import { bounds } from '../../../runtime/run/bounds.js';

/**
 * What one training run shows when its journal is read back. Rates are per second unless named otherwise; shares are 0
 * to 1.
 */
export interface RunMeasure {
  readonly evals: readonly {
    readonly label: string;
    readonly version: number;
    readonly episodes: number;
    readonly successes: number;
    readonly errors: number;
    readonly low: number;
    readonly high: number;
    readonly perFamily: Readonly<Record<string, { readonly episodes: number; readonly successes: number }>>;
  }[];
  readonly rollouts: {
    readonly queued: number;
    readonly ended: number;
    readonly successes: number;
    readonly errors: number;
    readonly trained: number;
    /** Not trained, by reason. */
    readonly retired: Readonly<Record<string, number>>;
  };
  readonly groups: {
    readonly formed: number;
    readonly dropped: number;
    /** Rollouts with an outcome per group that was curated. */
    readonly meanN: number;
    readonly injected: number;
  };
  readonly steps: {
    readonly generated: number;
    /** Of own rollouts. */
    readonly trained: number;
    /** Per rollout with an outcome. */
    readonly meanLength: number;
  };
  /** Rollouts that began in the middle of another one; absent where none did. */
  readonly branches?: Branches;
  readonly updates: number;
  /** Share of resolved rollouts whose steps were trained, errors counted as not. */
  readonly gradientShare: number;
  /** Training success in blocks of 64 rollouts, as they ended. */
  readonly curve: readonly {
    readonly rollouts: number;
    readonly successes: number;
    readonly low: number;
    readonly high: number;
  }[];
  /** First to last rollout ordered, s. */
  readonly rlSeconds: number;
  readonly throughput: Throughput | undefined;
}

export interface Branches {
  readonly begun: number;
  /** Given up, since a screen on the way to their step was not the recorded one. */
  readonly diverged: number;
  /** Steps acted out on the way there, and the time on desktops that this and the resets before it took. */
  readonly actedOut: number;
  readonly actedOutSeconds: number;
}

/** runtime/rollout/README.md#throughput-bound, between the end of the warm-up and the last order. */
export interface Throughput {
  readonly seconds: number;
  readonly rate: number;
  readonly bound: number;
  readonly boundBy: string;
  readonly ratio: number;
  readonly loose: number;
  readonly strict: number;
  /** Most that strict can be. */
  readonly strictCap: number;
  readonly replicaBusy: number;
  readonly trainerIdle: number;
  /** Updates that a trained step's version lags behind at the claim. */
  readonly staleness: { readonly mean: number; readonly p95: number; readonly max: number };
  /** Share of replica time out of service for new weights, and finishing calls without taking new ones. */
  readonly syncDown: number;
  readonly syncDrain: number;
  readonly syncs: number;
  /** Most replicas that were out for a sync at once, of all. */
  readonly outMax: number;
  readonly failed: number;
  readonly generatedActions: number;
  readonly trainedActions: number; /** Per minute. */
  readonly rolloutSeconds: number;
  readonly meanLength: number;
  readonly alpha: number;
  readonly updateSeconds: number;
}
export interface MeasureOptions {
  readonly desktops: number;
  readonly replicas: number;
  /** Calls that a replica takes at once; 1 unless said. */
  readonly calls?: number;
  /** ms from the first order that throughput leaves out. */
  readonly warmupMs: number;
}

interface Span {
  readonly kind: 'desktop' | 'replica' | 'trainer';
  readonly lane: string;
  readonly what: string;
  readonly start: number;
  readonly end: number;
}
interface Rollout {
  readonly ended: number;
  readonly steps: number;
  readonly busyMs: number;
  readonly workMs: number;
  readonly decideMs: number;
  readonly versions: readonly number[];
}
type Head = Extract<JournalEvent, { type: 'trajectory.recorded' }>['head'];
const BLOCK = 64;
/** Retired for what curation decided; the others never had an outcome. */
const CURATED = new Set(['no-variance', 'replaced', 'trimmed', 'masked', 'stale']);

/** Fed with a journal's events in order. */
export class RunMeter {
  readonly #o: MeasureOptions;
  readonly #evals: RunMeasure['evals'][number][] = [];
  readonly #rollouts = new Map<string, Rollout>();
  readonly #steps = new Map<string, { decide: number; works: number[]; versions: number[] }>();
  readonly #kept = new Map<string, readonly boolean[]>();
  readonly #resolved: { readonly at: number; readonly rollout: string; readonly trained: boolean }[] = [];
  readonly #updates: { readonly at: number; readonly rollouts: number; readonly actions: number }[] = [];
  readonly #claims: { readonly at: number; readonly lags: readonly number[] }[] = [];
  readonly #syncs: { readonly at: number; readonly failed: number; readonly drain: number; readonly swap: number }[] =
    [];
  readonly #spans: Span[] = [];
  readonly #sizes = new Map<string, number>();
  readonly #retired: Record<string, number> = {};
  readonly #curve: boolean[] = [];
  #branches: Branches = { begun: 0, diverged: 0, actedOut: 0, actedOutSeconds: 0 };
  #queued = 0;
  #first = NaN;
  #last = NaN;
  #errors = 0;
  #formed = 0;
  #dropped = 0;
  #members = 0;
  #injected = 0;

  constructor(o: MeasureOptions) {
    this.#o = o;
  }

  add(e: JournalEvent & { readonly at: number }): void {
    switch (e.type) {
      case 'eval':
        this.#evals.push({
          label: e.label ?? '',
          version: e.version,
          episodes: e.episodes,
          successes: e.successes,
          errors: e.errors,
          low: e.low,
          high: e.high,
          perFamily: e.perFamily ?? {},
        });
        break;
      case 'rollout.queued':
        this.#queued++;
        if (Number.isNaN(this.#first)) this.#first = e.at;
        this.#last = e.at;
        break;
      case 'rollout.step': {
        let s = this.#steps.get(e.rollout);
        if (!s) this.#steps.set(e.rollout, (s = { decide: 0, works: [], versions: [] }));
        const { timings: t, version } = e.step;
        s.decide += t.decide;
        s.works[e.step.index] = t.observe + t.perform + t.settle;
        s.versions[e.step.index] = version ?? NaN;
        break;
      }
      case 'trajectory.recorded':
        this.#ended(e.head);
        break;
      case 'rollout.retired':
        this.#retire(e.rollout, e.reason, e.at);
        break;
      case 'group.formed':
        this.#formed++;
        this.#close(e.group);
        for (const m of e.members)
          if (m.injected) this.#injected++;
          else this.#kept.set(m.rollout, m.keep);
        for (const r of e.retired) this.#retire(r.rollout, r.reason, e.at);
        break;
      case 'group.dropped':
        this.#dropped++;
        this.#close(e.group);
        for (const r of e.retired) this.#retire(r.rollout, r.reason, e.at);
        break;
      case 'group.retired':
        for (const r of e.rollouts) this.#retire(r, e.reason, e.at);
        break;
      case 'batch.claimed':
        this.#claims.push({
          at: e.at,
          lags: e.groups
            .flatMap((g) =>
              g.rollouts.flatMap((r) =>
                this.#keptSteps(r).map((i) => e.version - (this.#rollouts.get(r)?.versions[i] ?? NaN)),
              ),
            )
            .filter(Number.isFinite),
        });
        break;
      case 'batch.trained': {
        const own = e.rollouts.filter((r) => this.#kept.has(r));
        this.#updates.push({
          at: e.at,
          rollouts: own.length,
          actions: own.reduce((n, r) => n + this.#keptSteps(r).length, 0),
        });
        for (const rollout of own) this.#resolved.push({ at: e.at, rollout, trained: true });
        break;
      }
      case 'metrics':
        if (e.source === 'sync')
          this.#syncs.push({
            at: e.at,
            failed: e.values['failed'] ?? 0,
            drain: e.values['drainMs'] ?? 0,
            swap: e.values['swapMs'] ?? 0,
          });
        break;
      case 'spans':
        for (const [i, w] of e.what.entries()) {
          const start = e.t0 + e.start[i]!;
          this.#spans.push({ kind: e.kind, lane: e.lane, what: activities[w]!, start, end: start + e.ms[i]! });
        }
        break;
      default:
    }
  }

  #ended(h: Head): void {
    const s = this.#steps.get(h.id);
    this.#steps.delete(h.id);
    if (h.provenance.kind !== 'rollout') return;
    if (h.branch) this.#branched(h, s?.works ?? []);
    if (isError(h.outcome)) {
      this.#errors++;
      return;
    }
    const work = h.resetMs + h.verifyMs + sum((s?.works ?? []).map((ms) => ms || 0)),
      decideMs = s?.decide ?? 0;
    this.#rollouts.set(h.id, {
      ended: h.endedAt,
      steps: h.steps,
      busyMs: work + decideMs,
      workMs: work,
      decideMs,
      versions: s?.versions ?? [],
    });
    this.#curve.push(h.outcome.kind === 'success');
    if (h.group) this.#sizes.set(h.group, (this.#sizes.get(h.group) ?? 0) + 1);
  }
  #branched(h: Head, works: readonly number[]): void {
    const before = works.slice(0, h.branch!.step).map((ms) => ms || 0),
      { begun, diverged, actedOut, actedOutSeconds } = this.#branches;
    this.#branches = {
      begun: begun + 1,
      diverged: diverged + (isError(h.outcome) && h.outcome.error.kind === 'rollout.diverged' ? 1 : 0),
      actedOut: actedOut + before.length,
      actedOutSeconds: actedOutSeconds + (h.resetMs + sum(before)) / 1000,
    };
  }
  #close(group: string): void {
    this.#members += this.#sizes.get(group) ?? 0;
    this.#sizes.delete(group);
  }
  #retire(rollout: string, reason: string, at: number): void {
    this.#retired[reason] = (this.#retired[reason] ?? 0) + 1;
    if (CURATED.has(reason)) this.#resolved.push({ at, rollout, trained: false });
  }
  #keptSteps(rollout: string): number[] {
    return (this.#kept.get(rollout) ?? []).flatMap((k, i) => (k ? [i] : []));
  }

  done(): RunMeasure {
    const ended = [...this.#rollouts.values()],
      generated = sum(ended.map((r) => r.steps)),
      trained = this.#resolved.filter((r) => r.trained).length,
      groups = this.#formed + this.#dropped;
    return {
      evals: this.#evals,
      rollouts: {
        queued: this.#queued,
        ended: ended.length,
        successes: this.#curve.filter(Boolean).length,
        errors: this.#errors,
        trained,
        retired: this.#retired,
      },
      groups: {
        formed: this.#formed,
        dropped: this.#dropped,
        meanN: this.#members / Math.max(1, groups),
        injected: this.#injected,
      },
      steps: {
        generated,
        trained: sum(this.#updates.map((u) => u.actions)),
        meanLength: generated / Math.max(1, ended.length),
      },
      ...(this.#branches.begun > 0 ? { branches: this.#branches } : {}),
      updates: this.#updates.length,
      gradientShare: trained / Math.max(1, this.#resolved.length + this.#errors),
      curve: Array.from({ length: Math.floor(this.#curve.length / BLOCK) }, (_, i) => {
        const successes = this.#curve.slice(i * BLOCK, (i + 1) * BLOCK).filter(Boolean).length,
          { low, high } = wilson(successes, BLOCK);
        return { rollouts: (i + 1) * BLOCK, successes, low, high };
      }),
      rlSeconds: (this.#last - this.#first) / 1000 || 0,
      throughput: this.#throughput(),
    };
  }

  #throughput(): Throughput | undefined {
    const { desktops, replicas, calls = 1 } = this.#o,
      from = this.#first + this.#o.warmupMs,
      to = this.#last,
      ms = to - from;
    const within = <T extends { readonly at: number }>(xs: readonly T[]): T[] =>
      xs.filter((x) => x.at >= from && x.at <= to);
    const ended = [...this.#rollouts.values()].filter((r) => r.ended >= from && r.ended <= to),
      n = ended.length;
    if (!(ms > 0) || n === 0) return undefined;
    const mean = (f: (r: Rollout) => number): number => sum(ended.map(f)) / n;
    const time = (kind: Span['kind'], which: (what: string) => boolean): number =>
      sum(
        this.#spans
          .filter((s) => s.kind === kind && which(s.what))
          .map((s) => Math.max(0, Math.min(s.end, to) - Math.max(s.start, from))),
      );
    const updates = within(this.#updates),
      syncs = within(this.#syncs),
      resolved = within(this.#resolved);
    const length = mean((r) => r.steps),
      alpha = resolved.filter((r) => r.trained).length / Math.max(1, resolved.length);
    const updateMs = time('trainer', (w) => w === 'update'),
      actions = sum(updates.map((u) => u.actions));
    const x = bounds({
      desktops,
      rolloutSeconds: mean((r) => r.busyMs) / 1000,
      steps: length,
      replicas: replicas * calls,
      decisionsPerSecond: (1000 * sum(ended.map((r) => r.steps))) / Math.max(1e-9, sum(ended.map((r) => r.decideMs))),
      trainedPerRollout: actions / n,
      ...(updates.length > 0
        ? {
            trainer: {
              perUpdate: sum(updates.map((u) => u.rollouts)) / updates.length,
              seconds: updateMs / updates.length / 1000,
              share: alpha,
            },
          }
        : {}),
    });
    const rate = (1000 * n) / ms,
      bound = (x?.rolloutsPerHour ?? NaN) / 3600;
    return {
      seconds: ms / 1000,
      rate,
      bound,
      boundBy: x?.by ?? '',
      ratio: rate / bound,
      loose: time('desktop', () => true) / (desktops * ms),
      strict: time('desktop', (w) => w !== 'decide') / (desktops * ms),
      strictCap: mean((r) => r.workMs) / mean((r) => r.busyMs),
      replicaBusy: time('replica', (w) => w === 'decide') / (replicas * ms),
      trainerIdle: 1 - updateMs / ms,
      staleness: lagsOf(within(this.#claims).flatMap((c) => c.lags)),
      syncDown: sum(syncs.map((s) => s.swap)) / (replicas * ms),
      syncDrain: sum(syncs.map((s) => s.drain)) / (replicas * ms),
      syncs: syncs.length,
      outMax: mostAtOnce(
        this.#spans.filter((s) => s.kind === 'replica' && s.what === 'sync' && s.end >= from && s.start <= to),
      ),
      failed: sum(syncs.map((s) => s.failed)),
      generatedActions: (6e4 * sum(ended.map((r) => r.steps))) / ms,
      trainedActions: (6e4 * actions) / ms,
      rolloutSeconds: mean((r) => r.busyMs) / 1000,
      meanLength: length,
      alpha,
      updateSeconds: updateMs / Math.max(1, updates.length) / 1000,
    };
  }
}

const sum = (xs: readonly number[]): number => xs.reduce((a, b) => a + b, 0);

function lagsOf(lags: readonly number[]): Throughput['staleness'] {
  if (lags.length === 0) return { mean: 0, p95: 0, max: 0 };
  const s = [...lags].sort((a, b) => a - b);
  return { mean: sum(s) / s.length, p95: s[Math.min(s.length - 1, Math.floor(0.95 * s.length))]!, max: s.at(-1)! };
}

/** Most spans that overlap at any moment; one that begins where another ends does not overlap it. */
export function mostAtOnce(spans: readonly { readonly start: number; readonly end: number }[]): number {
  const edges = spans
    .flatMap(
      (s) =>
        [
          [s.start, 1],
          [s.end, -1],
        ] as const,
    )
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0,
    most = 0;
  for (const [, d] of edges) {
    now += d;
    most = Math.max(most, now);
  }
  return most;
}
