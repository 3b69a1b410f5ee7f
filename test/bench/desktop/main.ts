/**
 * `npm run bench:desktop [-- --quick] [-- --json FILE]`: how fast desktops are driven, beside an OSWorld-style baseline
 * on the same desktops, the same application and the same clicks, taken in turns; both encode and store every screen. Bars are those of the project's plan;
 * --quick takes fewer samples.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PngFrameStore } from '../../../runtime/data/store/frames.js';
import { createLocalProvider } from '../../../runtime/cluster/providers/local.js';
import { createDockerProvider, desktopPath } from '../../../runtime/cluster/providers/docker.js';
import { connectEngine, ensureImage, ensureRootfs } from '../../../runtime/cluster/imageBuild.js';
import type { Desktop, DesktopProvider, DesktopSpec } from '../../../runtime/cluster/types.js';
import { bar, benchArgs, finish, summary, type Bar } from '../lib/report.js';
import { Baseline, findProcess } from './baseline.js';
import { availableMb, ms, now, openCalculator, pssOf, rate, round, type Calculator } from './measure.js';
import { dirty } from './dirty.js';
import { APPS, settleAccuracy, type SettleSample } from './settleAccuracy.js';

const { quick, json } = benchArgs();
/** Both sides keep every screen as a PNG in a folder. */
const pictures = mkdtempSync(join(tmpdir(), 'bench-desktop-')),
  frames = new PngFrameStore(join(pictures, 'frames'));
let stored = 0;
const spec: DesktopSpec = { screen: { width: 1280, height: 720 }, memoryMb: 512, pids: 256 };
const N = quick
  ? {
      observe: 100,
      act: 20,
      settlePerApp: 20,
      resets: 16,
      counts: [1, 8],
      ours: 800,
      base: [1500, 1500, 4200],
      rounds: 1,
      desktops: 8,
      starts: 2,
    }
  : {
      observe: 1000,
      act: 200,
      settlePerApp: 40,
      resets: 250,
      counts: [1, 2, 4, 8],
      ours: 3000,
      base: [4000, 6000, 12000],
      rounds: 2,
      desktops: 8,
      starts: 5,
    };
const PAUSES = [0, 500, 2000];
const rows: Record<string, unknown>[] = [];
const bars: Bar[] = [];
const began = now();
const say = (text: string): void => console.log(`[${((now() - began) / 1000).toFixed(1)} s] ${text}`);
const row = (
  what: string,
  provider: string,
  unit: string,
  xs: readonly number[],
  extra: Record<string, unknown> = {},
): void => {
  const s = summary(xs);
  rows.push({
    what,
    provider,
    n: s.n,
    unit,
    min: round(s.min),
    p50: round(s.p50),
    mean: round(s.mean),
    p95: round(s.p95),
    max: round(s.max),
    ...extra,
  });
};

interface Kind {
  readonly name: string;
  readonly provider: DesktopProvider;
}

/**
 * Every way to a desktop that works on this machine; the first is the one `provider: auto` takes, which the bars are
 * about.
 */
async function kinds(): Promise<Kind[]> {
  const out: Kind[] = [];
  const docker = createDockerProvider({ spares: 0 }),
    local = createLocalProvider();
  const d = await docker.status();
  if (d.ok) {
    await ensureImage(connectEngine(), (p) => {
      if (p.phase === 'base' || p.phase === 'packages') process.stdout.write('.');
    });
    const first = await docker.create(spec);
    const path = desktopPath(first);
    await docker.destroy(first);
    out.push({ name: `docker, ${path} path`, provider: docker });
    if (path === 'fast')
      out.push({ name: 'docker, portable path', provider: createDockerProvider({ spares: 0, path: 'portable' }) });
  } else rows.push({ what: 'skipped: docker', provider: d.detail });
  try {
    await ensureRootfs({ onProgress: () => process.stdout.write('.') });
  } catch (e) {
    rows.push({ what: 'skipped: local root file system', provider: (e as Error).message });
  }
  const l = await local.status();
  if (l.ok) out.push({ name: 'local', provider: local });
  else rows.push({ what: 'skipped: local', provider: l.detail });
  return out;
}

async function basics(k: Kind, few = false): Promise<{ observe: number; reset: number }> {
  const starts: number[] = [];
  for (let i = 1; i < (few ? 1 : N.starts); i++) {
    const t = now();
    const d = await k.provider.create(spec);
    starts.push(now() - t);
    await k.provider.destroy(d);
  }
  const t = now();
  const d = await k.provider.create(spec);
  starts.push(now() - t);
  row('start a desktop, first frame drawn', k.name, 'ms', starts);
  const observe: number[] = [];
  for (let i = 0; i < N.observe; i++) {
    const t = now();
    const f = await d.observe();
    observe.push(now() - t);
    d.recycle?.(f);
  }
  row('observe, 1280x720, still screen', k.name, 'ms', observe, {
    note: 'buffers given back, as the episode loop does',
  });
  const kept: number[] = [];
  for (let i = 0; i < N.observe / 10; i++) kept.push(await ms(() => d.observe()));
  row('observe, 1280x720, frames kept', k.name, 'ms', kept);
  const calc = await openCalculator(d);
  const perform: number[] = [],
    settle: number[] = [],
    observed: number[] = [],
    step: number[] = [];
  for (let i = 0; i < (few ? 15 : N.act); i++) {
    const t0 = now();
    await d.perform({ type: 'click', at: calc.digits[(i * 4) % 9]! });
    const t1 = now();
    await d.settle();
    const t2 = now();
    const f = await d.observe();
    const t3 = now();
    d.recycle?.(f);
    perform.push(t1 - t0);
    settle.push(t2 - t1);
    observed.push(t3 - t2);
    step.push(t3 - t0);
  }
  row('click a calculator button: perform', k.name, 'ms', perform);
  row('click a calculator button: settle', k.name, 'ms', settle);
  row('click a calculator button: observe', k.name, 'ms', observed);
  row('click a calculator button: whole step', k.name, 'ms', step);
  const resets: number[] = [];
  for (let i = 0; i < (few ? 4 : quick ? 8 : 30); i++) {
    await dirty(d, i);
    resets.push(await ms(() => k.provider.reset(d)));
  }
  row('reset in place, from dirty, first frame drawn', k.name, 'ms', resets);
  await k.provider.destroy(d);
  return { observe: summary(observe).p50, reset: summary(resets).p50 };
}

/** Dirty a desktop, reset it, compare its first frame with the reference, over and over. */
async function identical(k: Kind): Promise<{ same: number; n: number; p50: number }> {
  const all = await Promise.all(
    [0, 1].map(async (part) => {
      const d = await k.provider.create(spec);
      const reference = (await d.observe()).data;
      const n = Math.floor(N.resets / 2) + (part < N.resets % 2 ? 1 : 0);
      let same = 0;
      const times: number[] = [];
      for (let i = 0; i < n; i++) {
        await dirty(d, i * 2 + part);
        times.push(await ms(() => k.provider.reset(d)));
        if ((await d.observe()).data.equals(reference)) same++;
      }
      await k.provider.destroy(d);
      return { same, n, times };
    }),
  );
  const times = all.flatMap((a) => a.times);
  const same = all.reduce((s, a) => s + a.same, 0),
    n = all.reduce((s, a) => s + a.n, 0);
  row('reset, two desktops at once', k.name, 'ms', times, {
    note: `${same} of ${n} first frames identical to the reference`,
  });
  return { same, n, p50: summary(times).p50 };
}

async function accuracy(k: Kind): Promise<{ stale: number; mean: number }> {
  const samples = (
    await Promise.all(
      APPS.map(async (app, i): Promise<SettleSample[]> => {
        const d = await k.provider.create(spec);
        const s = await settleAccuracy(d, app, N.settlePerApp, 100 + i);
        await k.provider.destroy(d);
        return s;
      }),
    )
  ).flat();
  for (const app of APPS) {
    const s = samples.filter((x) => x.app === app.name);
    row(
      `random action to settled: ${app.name}`,
      k.name,
      'ms',
      s.map((x) => x.ms),
      {
        note: `${s.filter((x) => x.changed).length} changed the screen, stale ${s.filter((x) => x.stale).length}, unsettled ${s.filter((x) => !x.settled).length}`,
      },
    );
  }
  const detectors = [...new Set(samples.map((x) => x.detector))].join(', ');
  const stale = (100 * samples.filter((x) => x.stale).length) / samples.length;
  row(
    'random action to settled: all',
    k.name,
    'ms',
    samples.map((x) => x.ms),
    {
      note: `${samples.filter((x) => x.changed).length} changed the screen, stale ${stale.toFixed(1)} %, detector ${detectors}`,
    },
  );
  return { stale, mean: summary(samples.map((x) => x.ms)).mean };
}

/** A step as a run makes it: its screen is encoded and stored before the step counts. */
const oursStep = async (c: Calculator, k: number): Promise<void> => {
  await c.desktop.perform({ type: 'click', at: c.digits[(k * 4) % 9]! });
  await c.desktop.settle();
  const frame = await c.desktop.observe();
  await frames.put(frame);
  c.desktop.recycle?.(frame);
};

/** Settled steps per second of ours and steps of the baseline with its pauses, on the same desktops, in turns. */
async function steps(k: Kind): Promise<{ ratios: number[]; pss: number; available: number }> {
  const before = availableMb();
  const desktops: Desktop[] = [];
  for (let i = 0; i < N.desktops; i += 2)
    desktops.push(...(await Promise.all([k.provider.create(spec), k.provider.create(spec)])));
  const calculators = await Promise.all(desktops.map(openCalculator));
  const available = (before - availableMb()) / N.desktops;
  const pss = await Promise.all(desktops.map((d) => pssOf(d, findProcess)));
  row('memory of a desktop with a calculator, PSS', k.name, 'MB', pss);
  rows.push({
    what: `drop of MemAvailable over ${N.desktops} desktops, each`,
    provider: k.name,
    n: N.desktops,
    unit: 'MB',
    mean: round(available),
  });
  const bases = await Promise.all(desktops.map((d) => Baseline.start(d)));
  const pairs = calculators.map((c, i) => ({ c, b: bases[i]! }));
  const baseStep =
    (pause: number) =>
    async (p: { c: Calculator; b: Baseline }, i: number): Promise<void> => {
      await p.b.click(p.c.digits[(i * 4) % 9]!);
      if (pause > 0)
        await new Promise((r) => {
          setTimeout(r, pause);
        });
      await writeFile(join(pictures, `step-${stored++}.png`), await p.b.screenshot());
    };
  const ratios: number[] = [];
  for (const n of N.counts) {
    const some = pairs.slice(0, n);
    const ours: number[] = [],
      base: number[][] = PAUSES.map(() => []);
    for (let r = 0; r < N.rounds; r++) {
      for (const [i, pause] of PAUSES.entries()) {
        if (quick && n < 8 && pause > 0) continue; // a wait of known length is not worth a short run's time
        ours.push(
          (
            await rate(
              some.map((p) => p.c),
              N.ours,
              oursStep,
            )
          ).perSecond,
        );
        base[i]!.push((await rate(some, N.base[i]!, baseStep(pause))).perSecond);
      }
      if (!quick)
        ours.push(
          (
            await rate(
              some.map((p) => p.c),
              N.ours,
              oursStep,
            )
          ).perSecond,
        );
    }
    const o = summary(ours).p50;
    row(`settled steps/s in sum, ${n} desktop${n > 1 ? 's' : ''}: ours`, k.name, '1/s', ours, {
      note: `${round(o / n)} per desktop`,
    });
    PAUSES.forEach((pause, i) => {
      if (base[i]!.length === 0) return;
      const b = summary(base[i]!).mean;
      row(
        `steps/s in sum, ${n} desktop${n > 1 ? 's' : ''}: OSWorld style, pause ${pause / 1000} s`,
        k.name,
        '1/s',
        base[i]!,
        { note: `ours is ${round(o / b)} times it` },
      );
      if (n === 8) ratios.push(o / b);
    });
    say(
      `${n} desktops: ours ${round(o)}/s, OSWorld style ${base
        .filter((b) => b.length > 0)
        .map((b) => round(summary(b).mean))
        .join(' / ')}/s at pause ${base
        .map((b, i) => (b.length > 0 ? PAUSES[i]! / 1000 : []))
        .flat()
        .join(' / ')} s`,
    );
  }
  for (const d of desktops) await k.provider.destroy(d);
  return { ratios, pss: summary(pss).p50, available };
}

/** Steps of a way to desktops that is not the first: ours alone. */
async function shortSteps(k: Kind): Promise<void> {
  for (const n of quick ? [1] : [1, 8]) {
    const calculators: Calculator[] = [];
    for (let i = 0; i < n; i++) calculators.push(await openCalculator(await k.provider.create(spec)));
    const r = await rate(calculators, N.ours, oursStep);
    row(`settled steps/s in sum, ${n} desktop${n > 1 ? 's' : ''}: ours`, k.name, '1/s', [r.perSecond], {
      note: `${r.steps} steps`,
    });
    await Promise.all(calculators.map((c) => k.provider.destroy(c.desktop)));
  }
}

const all = await kinds();
try {
  const first = all[0];
  if (!first)
    throw new Error('No desktop can be started on this machine: install Docker, or bubblewrap and mmdebstrap.');
  say(
    `ways to a desktop here: ${all.map((k) => k.name).join('; ')}${quick ? ' (quick: few samples, figures are rough)' : ''}`,
  );
  const b = await basics(first);
  say('basics done');
  const i = await identical(first);
  say(`${i.same} of ${i.n} resets identical`);
  const a = await accuracy(first);
  say(`settle: mean ${round(a.mean)} ms, stale ${round(a.stale)} %`);
  const s = first.name.includes('portable') ? undefined : await steps(first);
  for (const k of all.slice(1)) {
    await basics(k, quick);
    await shortSteps(k);
    say(`${k.name} done`);
  }
  bars.push(
    bar('observe_p50_ms', b.observe, 'ms', '<= 1'),
    bar('reset_p50_ms', b.reset, 'ms', '<= 150'),
    bar('reset_identical', i.same, `of ${i.n}`, `>= ${i.n}`),
    bar('settle_stale_pct', a.stale, '%', '<= 2'),
    bar('settle_mean_ms', a.mean, 'ms', '<= 40'),
  );
  if (s)
    bars.push(
      bar('steps_ratio_8_vs_osworld_style_pause0', s.ratios[0]!, 'x', '>= 10'),
      bar('steps_ratio_8_vs_osworld_style_pause0_5', s.ratios[1]!, 'x', '>= 10'),
      bar('steps_ratio_8_vs_osworld_style_pause2', s.ratios[2]!, 'x', '>= 10'),
      bar('memory_mb_per_desktop', Math.max(s.pss, s.available), 'MB', '<= 120'),
    );
} finally {
  for (const k of all) await k.provider.dispose();
  rmSync(pictures, { recursive: true, force: true });
}
say('done');
if (quick) rows.push({ what: 'quick run: few samples, figures are rough' });
finish('desktop', rows, bars, json);
