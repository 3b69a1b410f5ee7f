/**
 * A run as the daemon tells it, made up from a seed with the proportions of a real quick start (13 families, 6
 * desktops, 2 replicas, one trainer; 20 minutes, about 6,000 rollouts, an update every 8 s), or of any other length.
 */
import { mechanismNames, parseRunFile } from '../../../../runtime/config/index.js';
import { mechanisms } from '../../../../runtime/data/curation/registry.js';
import type {
  Activity,
  CurationChart,
  CurationView,
  EvalPoint,
  Lane,
  Lanes,
  Ledger,
  RunDetail,
  RunEvent,
  RunState,
  RunStatus,
  Series,
  SuccessCurve,
  TaskRow,
  TrajectoryRow,
} from '../../../../runtime/protocol/types.js';
import { wilson } from '../../../../webview/dashboard/stats.js';

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
export interface MakeOptions {
  readonly seed?: number;
  readonly minutes?: number;
  readonly budgetMinutes?: number;
  readonly state?: RunState;
  readonly infeasible?: boolean;
  readonly points?: number;
  /** ms since its start in which nobody worked on it. */
  readonly outages?: readonly (readonly [number, number])[];
}

const families: readonly (readonly [string, string, number, number, number])[] = [
  // family, title, success at first, success at last, steps
  ['calc-copy', 'Calculator: copy a result', 0.78, 0.99, 3],
  ['entry-type', 'Form: type into an entry', 0.8, 0.98, 3],
  ['file-delete', 'Files: delete a file', 0.3, 0.86, 4],
  ['file-rename', 'Files: rename a file', 0.2, 0.78, 4],
  ['folder-new', 'Files: make a folder', 0.7, 0.97, 3],
  ['form-one', 'Form: fill a field and send', 0.08, 0.72, 4],
  ['list-confirm', 'List: choose and confirm', 0.45, 0.93, 4],
  ['list-pick', 'List: pick an item', 0.82, 0.99, 3],
  ['note-replace', 'Notes: replace the text', 0.7, 0.97, 4],
  ['note-save', 'Notes: write and save', 0.76, 0.98, 3],
  ['press-button', 'Window: press a button', 0.9, 1, 2],
  ['press-two', 'Windows: press in two', 0.4, 0.92, 3],
  ['term-touch', 'Terminal: make a file', 0.88, 1, 2],
];
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
const gauss = (r: () => number): number => Math.sqrt(-2 * Math.log(1 - r())) * Math.cos(2 * Math.PI * r());
const clamp = (x: number, lo: number, hi: number): number => Math.max(lo, Math.min(hi, x));

export function makeRun(o: MakeOptions = {}): MadeRun {
  const r = random(o.seed ?? 7),
    minutes = o.minutes ?? 13.6,
    createdAt = 1_795_178_843_460,
    warm = Math.min(200_000, minutes * 60_000 * 0.25),
    now = createdAt + minutes * 60_000,
    points = o.points ?? 400,
    run = '/work/runs/2026-11-20-1247-quickstart-s1';
  const train = now - createdAt - warm,
    version = Math.floor(train / 8000) + 2,
    perHour = 21_400,
    ended = Math.round((train / 3.6e6) * perHour);
  const learnt = (t: number): number =>
    1 - Math.exp(-2.6 * clamp((t - createdAt - warm) / Math.max(train, 12 * 60_000), 0, 1));
  const rateAt = (f: number, t: number): number => families[f]![2] + (families[f]![3] - families[f]![2]) * learnt(t);
  const times = Array.from({ length: points }, (_, i) => createdAt + warm + (train * (i + 1)) / points);

  const curveOf = (family: string | undefined, base: (t: number) => number, infeasible?: boolean): SuccessCurve => {
    let wobble = 0;
    const mean = times.map((t) => {
        wobble = wobble * 0.93 + gauss(r) * 0.022;
        return clamp(base(t) + wobble, 0, 1);
      }),
      bands = mean.map((m) => wilson(Math.round(m * 64), 64)!);
    return {
      ...(family ? { family } : {}),
      ...(infeasible ? { infeasible } : {}),
      window: 64,
      ...(family ? {} : { balanced: { families: families.length, each: 5 } }),
      at: times,
      rollout: times.map((_, i) => Math.round((ended * (i + 1)) / points / (family ? families.length : 1))),
      mean,
      low: bands.map((b) => b.low),
      high: bands.map((b) => b.high),
    };
  };
  const hard = (t: number): number =>
    families.reduce((a, _, f) => a + rateAt(f, t) * (1.3 - rateAt(f, t)), 0) /
    families.reduce((a, _, f) => a + (1.3 - rateAt(f, t)), 0);
  const curves = [
    curveOf(undefined, hard),
    ...(o.infeasible ? [curveOf(undefined, (t) => 0.15 + 0.5 * learnt(t), true)] : []),
    ...families.map(([f], i) => curveOf(`desk/${f}`, (t) => rateAt(i, t))),
  ];

  const evalAt = (label: string, t: number, v: number, per: (f: number) => number): EvalPoint => {
    const perFamily = Object.fromEntries(
        families.map(([f], i) => [
          `desk/${f}`,
          { episodes: 5, successes: clamp(Math.round(per(i) * 5 + gauss(r) * 0.3), 0, 5) },
        ]),
      ),
      successes = Math.min(
        64,
        Object.values(perFamily).reduce((a, x) => a + x.successes, 0),
      ),
      w = wilson(successes, 64)!;
    return {
      label,
      at: t,
      version: v,
      episodes: 64,
      successes,
      errors: 0,
      low: w.low,
      high: w.high,
      perFamily,
      ...(o.infeasible && t > createdAt + warm
        ? { infeasible: { episodes: 16, successes: Math.round(16 * (0.15 + 0.5 * learnt(t))) } }
        : {}),
    };
  };
  const evals = [
    evalAt('untrained', createdAt + 7000, 0, () => 0),
    evalAt('warm start', createdAt + warm - 5000, 2, (f) => rateAt(f, createdAt + warm) * 0.9),
  ];
  for (let t = createdAt + warm + 240_000; t < now; t += 240_000)
    evals.push(
      evalAt(
        `after ${Math.round((t - createdAt) / 60_000)} min`,
        t,
        Math.floor((t - createdAt - warm) / 8000) + 2,
        (f) => clamp(rateAt(f, t) + 0.06, 0, 1),
      ),
    );

  const updates = Array.from(
    { length: Math.min(2000, Math.max(1, version - 2)) },
    (_, i, a = Math.min(2000, Math.max(1, version - 2))) => createdAt + warm + (train * (i + 1)) / a,
  );
  const series: Series[] = [],
    add = (name: string, at: readonly number[], value: (t: number, i: number) => number): void => {
      series.push({ name, at, value: at.map(value) });
    };
  add('run.rolloutsPerHour', updates, (t) =>
    clamp(perHour + 2600 * Math.sin(t / 70_000) + gauss(r) * 700, 14_000, 26_000),
  );
  add('run.stepsPerMinute', updates, (t) => 1240 + 110 * Math.sin(t / 70_000) + gauss(r) * 40);
  add('run.trainedActionsPerMinute', updates, (_, i) => 780 - 150 * (1 - Math.exp(-i / 15)) + gauss(r) * 6);
  add('run.desktopUtilisation', updates, (_, i) => 0.73 + 0.02 * Math.exp(-i / 9) + gauss(r) * 0.002);
  add('run.replicaUtilisation', updates, (_, i) => 0.17 + 0.1 * Math.exp(-i / 4));
  add('run.trainerUtilisation', updates, (_, i) => 0.8 - 0.25 * Math.exp(-i / 5));
  add('run.boundRolloutsPerHour', updates, (_, i) => 29_200 + 3000 * Math.exp(-i / 20));
  add('run.boundStepsPerMinute', updates, (_, i) => 1710 + 200 * Math.exp(-i / 20));
  add('run.boundTrainedActionsPerMinute', updates, (_, i) => 705 + 140 * Math.exp(-i / 20));
  add('run.success', updates, (t) => hard(t));
  add('run.errors', updates, () => 0);
  add('run.elapsedMs', updates, (t) => t - createdAt);
  add('update.loss', updates, (_, i) => 0.026 + 0.02 * Math.exp(-i / 20) + gauss(r) * 0.016);
  add('update.policyLoss', updates, () => -0.006 + gauss(r) * 0.014);
  add('update.imitationLoss', updates, (_, i) => 0.026 + 0.05 * Math.exp(-i / 10) + Math.abs(gauss(r)) * 0.006);
  add('update.entropy', updates, (_, i) => 0.34 + 0.34 * Math.exp(-i / 25) + gauss(r) * 0.03);
  add('update.gradNorm', updates, () => 2.58 + gauss(r) * 0.34);
  add('update.lr', updates, (t) => 3e-4 * (t - createdAt < (now - createdAt) * 0.6 ? 1 : 0.4));
  add('update.ms', updates, () => 8250 + gauss(r) * 900);
  add('update.klK3', updates, () => (r() < 0.04 ? Math.exp(3 + r() * 7) : 0.05 + Math.abs(gauss(r)) * 0.06));
  add('update.klK1', updates, () => -0.09 + gauss(r) * 0.05);
  add('update.refKl', updates, () => 0);
  add('update.ess', updates, () => clamp(0.962 + gauss(r) * 0.018, 0.87, 1));
  add('update.tisMean', updates, () => clamp(0.937 + gauss(r) * 0.025, 0.84, 1));
  add('update.tisCapped', updates, () => clamp(0.46 + gauss(r) * 0.1, 0.2, 0.7));
  add('update.clipLow', updates, () => clamp(0.075 + gauss(r) * 0.025, 0.014, 0.13));
  add('update.clipHigh', updates, () => clamp(0.029 + gauss(r) * 0.014, 0.003, 0.075));
  add('update.dualClip', updates, () => (r() < 0.1 ? 0.004 : 0));

  const size = (p: number): number => (p < 0.6 ? 8 : Math.max(2, Math.floor(9 / p - 7)));
  const groups = families.map(([f, , , , steps], i) => {
    const at = times.filter((_, k) => k % Math.max(3, Math.round(points / 60)) === i % 3);
    return {
      family: `desk/${f}`,
      at,
      size: at.map((t) => clamp(size(clamp(rateAt(i, t) + gauss(r) * 0.08, 0.05, 1)), 2, 8)),
      cap: at.map((_, k) => (k === 0 ? 12 : k < 4 ? steps + 4 : steps + 2)),
    };
  });
  const edges = Array.from({ length: 31 }, (_, i) => i * 0.06),
    counts = edges
      .slice(1)
      .map((e) =>
        Math.round(
          620 * Math.exp(-e / 0.1) +
            260 * Math.exp(-(((e - 0.45) / 0.12) ** 2)) +
            60 * Math.exp(-(((e - 0.95) / 0.2) ** 2)) +
            r() * 8,
        ),
      );
  const formed = times.filter((_, i) => i % 2 === 0),
    injected = times.filter(() => r() < 0.24);
  const data: Readonly<Record<string, CurationChart['data']>> = {
    'dynamicRollouts.size': {
      form: 'families',
      families: groups.map((g) => ({ family: g.family, at: g.at, value: g.size })),
    },
    'dynamicLength.cap': {
      form: 'families',
      families: groups.map((g) => ({ family: g.family, at: g.at, value: g.cap })),
    },
    'highEntropy.entropy': {
      form: 'histogram',
      edges,
      counts,
      mark: {
        at: 0.021,
        label: 'threshold {0}',
        summary: 'Threshold of the last group: {0}; about {1} of these steps lie below it and would be dropped.',
      },
    },
    'highEntropy.kept': {
      form: 'series',
      at: formed,
      value: formed.map(() => clamp(0.79 + gauss(r) * 0.03, 0.66, 0.95)),
      meanOf: 20,
      ceil: 1,
      mark: { at: 0.8, label: 'kept by entropy: {0}' },
    },
    'pool.injections': { form: 'series', at: injected, value: injected.map((_, i) => i + 1), sum: true },
    'staleness.lag': {
      form: 'bars',
      counts: [Math.round(ended * 0.17), Math.round(ended * 0.3), Math.round(ended * 0.08)],
    },
  };
  const curation: CurationView = {
    // The words are those of the mechanisms themselves; what they read from a run is made up here.
    charts: mechanismNames.flatMap((name) =>
      mechanisms[name].charts.flatMap((c): CurationChart[] => {
        const id = `${name}.${c.name}`,
          made = data[id];
        return made ? [{ id, unit: c.unit, words: c.words, data: made }] : [];
      }),
    ),
    tis: {
      edges: Array.from({ length: 21 }, (_, i) => i / 20),
      counts: Array.from({ length: 20 }, (_, i) => (i === 19 ? 214 : Math.round(2 + 46 * (i / 19) ** 6 + r() * 3))),
    },
  };
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

function evaluated(evals: readonly EvalPoint[], family: string): TaskRow['evaluation'] {
  const e = evals.at(-1),
    of = e?.perFamily[family];
  return e && of && { version: e.version, ...of, ...wilson(of.successes, of.episodes)! };
}

/**
 * Spans of six desktops, two replicas and the trainer in a window; shorter ones are merged as the daemon does when
 * pixels are few.
 */
function makeLanes(start: number, trainFrom: number, end: number, from: number, to: number, width: number): Lanes {
  const r = random(11),
    pixel = (to - from) / Math.max(1, width),
    merged = pixel > 60,
    a = Math.max(from, start),
    b = Math.min(to, end);
  const make = (
    id: string,
    kind: Lane['kind'],
    fill: (add: (what: Activity, ms: number, rollout?: string, version?: number) => void, now: () => number) => void,
  ): Lane => {
    const what: Activity[] = [],
      at: number[] = [],
      ms: number[] = [],
      rollout: string[] = [],
      versions: number[] = [];
    let t = kind === 'trainer' ? trainFrom : Math.max(trainFrom, a - 3000);
    // A window's content does not depend on the window: time runs in slots of 4 s.
    t = trainFrom + Math.floor((t - trainFrom) / 4000) * 4000;
    fill(
      (w, d, id2 = '', v = -1) => {
        const len = Math.min(d, b - t);
        if (t + d > a && len > 0) {
          if (merged && what.at(-1) === w && w !== 'idle' && kind !== 'desktop')
            ms[ms.length - 1] = t + len - at.at(-1)!;
          else {
            what.push(w);
            at.push(t);
            ms.push(len);
            rollout.push(id2);
            versions.push(v);
          }
        }
        t += d;
      },
      () => t,
    );
    return { id, kind, what, start: at, ms, rollout, version: versions };
  };
  const versionAt = (t: number): number => Math.floor((t - trainFrom) / 8000) + 2;
  const lanes: Lane[] = [];
  for (let d = 1; d <= 6; d++)
    lanes.push(
      make(`desktop-${d}`, 'desktop', (add, now) => {
        let k = 0;
        while (now() < b) {
          if (merged && pixel > 400) {
            const w = (['act', 'settle', 'decide', 'reset', 'verify'] as const)[Math.floor(r() * 5)]!;
            add(w, pixel * (1 + 2 * r()));
            continue;
          }
          const id = `r${String(d * 1000 + (k++ % 900)).padStart(6, '0')}`,
            v = versionAt(now()),
            steps = 2 + Math.floor(r() * 3);
          add('reset', 60 + r() * 50, id, v);
          add('setup', 90 + r() * 70, id, v);
          for (let s = 0; s < steps; s++) {
            add('observe', 6 + r() * 5, id, v);
            add('decide', 22 + r() * 20, id, v);
            add('act', 18 + r() * 20, id, v);
            add('settle', 70 + r() * 130, id, v);
          }
          add('verify', 30 + r() * 40, id, v);
          if (r() < 0.5) add('idle', 40 + r() * 300);
        }
      }),
    );
  const syncs: { lane: string; start: number; ms: number; version: number }[] = [];
  for (let p = 0; p < 2; p++)
    lanes.push(
      make(`replica-${p}`, 'replica', (add, now) => {
        let sync = trainFrom + (Math.floor((now() - trainFrom) / 8000) + 1) * 8000 + p * 120;
        while (now() < b) {
          if (now() >= sync) {
            const d = 60 + r() * 80;
            if (now() + d > a && now() < b)
              syncs.push({ lane: `replica-${p}`, start: now(), ms: d, version: versionAt(now()) });
            add('sync', d, '', versionAt(now()));
            sync += 8000;
            continue;
          }
          if (merged && pixel > 400) {
            add('decide', pixel, '', versionAt(now()));
            add('idle', pixel * 3);
            continue;
          }
          add('decide', 14 + r() * 14, `r${String(1000 + Math.floor(r() * 5000)).padStart(6, '0')}`, versionAt(now()));
          add('idle', 20 + r() * 130);
        }
      }),
    );
  lanes.push(
    make('trainer', 'trainer', (add, now) => {
      while (now() < b) {
        const d = 5900 + r() * 900;
        add('update', d, '', versionAt(now()));
        add('idle', 8000 - d);
      }
    }),
  );
  return { from: a, to: b, lanes, syncs, merged };
}
