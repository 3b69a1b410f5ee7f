/**
 * A run as the daemon tells it, made up from a seed with the proportions of a real quick start (13 families, 6
 * desktops, 2 replicas, one trainer; 20 minutes, about 6,000 rollouts, an update every 8 s), or of any other length.
 */
import { parseRunFile } from '../../../../runtime/config/index.js';
import type {
  CurationView,
  Lanes,
  Ledger,
  RunDetail,
  RunEvent,
  RunStatus,
  Series,
  SuccessCurve,
  TaskRow,
  TrajectoryRow,
} from '../../../../runtime/protocol/types.js';
import { wilson } from '../../../../webview/dashboard/stats.js';
import { courseOf, curvesOf, evalsOf, evaluated, families, type MakeOptions } from './course.js';
import { curationOf, groupsOf } from './curation.js';
import { makeLanes } from './lanes.js';
import { seriesOf } from './series.js';

export interface MadeRun {
  readonly run: string;
  readonly createdAt: number;
  readonly now: number;
  readonly detail: RunDetail;
  readonly status: RunStatus;
  readonly ledger: Ledger;
  readonly curves: readonly SuccessCurve[];
  readonly series: readonly Series[];
  readonly curation: CurationView;
  readonly tasks: readonly TaskRow[];
  lanes(from: number, to: number, width: number): Lanes;
  failures(n: number): readonly TrajectoryRow[];
  /** What happens in the next `ms` after `now`. */
  events(from: number, ms: number, seq: number): RunEvent[];
}

export function makeRun(o: MakeOptions = {}): MadeRun {
  const run = '/work/runs/2026-11-20-1247-quickstart-s1',
    course = courseOf(o),
    curves = curvesOf(course),
    evals = evalsOf(course),
    series = seriesOf(course),
    groups = groupsOf(course),
    curation = curationOf(course, groups);
  const { createdAt, warm, now, version, ended, rateAt } = course;
  const share = families.map(([, , a]) => 1.25 - a),
    whole = share.reduce((a, b) => a + b, 0);
  const tasks = families.map(([f, title, , , steps], i): TaskRow => {
    const n = Math.round((ended * share[i]!) / whole),
      rate = rateAt(i, now),
      w = wilson(Math.round(rate * 16), 16)!;
    return {
      family: `desk/${f}`,
      title,
      apps: [title.split(':')[0]!],
      rollouts: n,
      successes: Math.round(n * rateAt(i, (now + createdAt + warm) / 2)),
      rate,
      low: w.low,
      high: w.high,
      recent: 16,
      evaluation: evaluated(evals, `desk/${f}`),
      groupSize: groups[i]!.size.at(-1),
      cap: groups[i]!.cap.at(-1),
      meanSteps: steps + 0.1,
      poolEntries: 12 + i,
      spark: curves
        .at(-families.length + i)!
        .mean.filter((_, k) => k % 17 === 0)
        .slice(-24),
    };
  });
  const trained = Math.round(ended * 0.555),
    flat = Math.round(ended * 0.416),
    replaced = ended - trained - flat - 31,
    queued = 3,
    running = 6;
  const ledger: Ledger = {
    generated: ended + queued + running,
    begun: ended + running,
    trained,
    inFlight: 31 + queued + running,
    byState: { queued, running, recorded: 9, grouped: 4, claimed: 18, trained, retired: flat + replaced },
    retired: { 'no-variance': flat, replaced },
    closes: true,
  };
  const state = o.state ?? 'running',
    budgetMs = (o.budgetMinutes ?? 20) * 60_000,
    live = state === 'running' || state === 'paused' || state === 'stopping';
  const status: RunStatus = {
    state,
    phase: live ? 'training' : 'done',
    elapsedMs: now - createdAt,
    budgetMs,
    version,
    rollouts: ended + running,
    running,
    waitingGroups: 4,
    errors: 0,
    rolloutsPerHour: series[0]!.value.at(-1)!,
    stepsPerMinute: series[1]!.value.at(-1)!,
    trainedActionsPerMinute: series[2]!.value.at(-1)!,
    bounds: { rolloutsPerHour: 29_200, stepsPerMinute: 1710, trainedActionsPerMinute: 705, by: 'trainer' },
    success: curves[0]!.mean.at(-1)!,
    curve: curves[0]!.mean.filter((_, i) => i % 12 === 0),
    desktopUtilisation: 0.73,
    replicaUtilisation: 0.17,
    trainerUtilisation: 0.8,
    replicaVersions: [version, version - 1],
  };
  const detail: RunDetail = {
    summary: {
      run,
      id: '2026-11-20-1247-quickstart-s1',
      name: 'quickstart',
      createdAt,
      state,
      rollouts: ended + running,
      version,
      seed: 1,
      lastEval: evals.at(-1),
      evals: evals.map((e) => e.successes / e.episodes),
      ...(live ? { status } : {}),
    },
    ledger,
    evals,
    tasks,
    config: parseRunFile({ preset: 'quickstart' }),
    timeline: {
      phases: [
        { phase: 'reading', from: createdAt + 9000 },
        { phase: 'demonstrations', from: createdAt + warm * 0.45 },
        { phase: 'warm start', from: createdAt + warm * 0.6 },
        { phase: 'training', from: createdAt + warm },
      ],
      outages: o.outages?.map(([from, to]) => ({ from: createdAt + from, to: createdAt + to })) ?? [],
    },
    checkpoints: [{ version, path: `${run}/checkpoints/v${version}` }],
    seq: 41_200,
  };
  return {
    run,
    createdAt,
    now,
    detail,
    status,
    ledger,
    curves,
    series,
    curation,
    tasks,
    lanes: (from, to, width) => makeLanes(createdAt, createdAt + warm, now, from, to, width),
    failures: (n) =>
      Array.from({ length: n }, (_, i): TrajectoryRow => {
        const f = [5, 3, 2, 11, 5, 6][i % 6]!;
        return {
          rollout: `r${String(ended - i * 7).padStart(6, '0')}`,
          task: `desk/${families[f]![0]}#${17 + i * 31}`,
          family: `desk/${families[f]![0]}`,
          instruction: [
            'Type "Lena Park" into Name and press Send.',
            'Rename report.txt to final.txt.',
            'Delete the file old-notes.txt.',
            'Click "Kiwi" in the first window and "Copy" in the one that follows.',
          ][i % 4]!,
          outcome: 'failure',
          reward: 0,
          truncated: i % 3 === 0,
          provenance: 'rollout',
          steps: i % 3 === 0 ? 6 : 4,
          cap: 6,
          versions: [version - 1, version],
          endedAt: now - i * 4000,
        };
      }),
    events: (from, ms, seq) => {
      const l = makeLanes(createdAt, createdAt + warm, from + ms, from, from + ms, 1e6),
        out: RunEvent[] = [{ seq: ++seq, at: from + ms, type: 'spans', lanes: l.lanes, syncs: l.syncs }];
      const row = {
        rollout: `r${seq}`,
        task: 't',
        family: 'desk/form-one',
        instruction: '',
        outcome: 'success',
        provenance: 'rollout',
        steps: 4,
        cap: 6,
      } as const;
      out.push({ seq: ++seq, at: from + ms, type: 'ended', row });
      return out;
    },
  };
}
