/**
 * `npm run bench:scale [-- --desktops N[,N]] [--bare] [--quick] [--slow F] [--json FILE] [--out DIR]`: what one daemon costs and holds, with up
 * to a thousand desktops. Desktops and model servers are synthetic and in other processes; what the daemon does is real
 * (test/bench/README.md#scale).
 */
import { fork, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Size } from '../../../runtime/domain/index.js';
import { bar, finish, type Bar } from '../lib/report.js';
import { sessionArgs } from '../lib/session.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { child } from './child.js';
import type { DaemonResult, Reply, Request, Used } from './wire.js';

interface Setting {
  readonly desktops: number;
  readonly screen: Size;
  /** By a program that does the least of it (bare.ts). */
  readonly bare?: boolean;
}
interface Measured extends Setting {
  readonly daemon: DaemonResult;
  readonly utilisation: number;
  readonly stepsPerSecond: number;
  readonly cpuMsPerStep: number;
  readonly mainMsPerStep: number;
  readonly harnessCpuMsPerStep: number;
  readonly requestKb: number;
  readonly imagesPerRequest: number;
}
const HD = { width: 1280, height: 720 },
  FULL_HD = { width: 1920, height: 1080 };
/** Desktops of one process of the harness, and requests of one model server. */
const EACH = 500;
/** Steps a second, at most, while episodes get under way. */
const HURRIED = 150;

async function main(): Promise<void> {
  const args = sessionArgs(),
    { quick } = args,
    // Models that answer so many times more slowly: what a thousand desktops hold, on a machine that cannot serve their pace.
    slow = Number(args.option('--slow') ?? 1),
    times = quick ? { slow, warmMs: 9000 * slow, windowMs: 9000 } : { slow, warmMs: 30_000 * slow, windowMs: 45_000 };
  const counts = args.numbers('--desktops', quick ? [64, 180] : [64, 180, 512, 1000]),
    bare = args.flag('--bare'),
    settings: Setting[] = counts.map((desktops) => ({ desktops, screen: HD, bare }));
  if (!bare && !quick && args.option('--desktops') === undefined)
    settings.push({ desktops: 180, screen: FULL_HD }, { desktops: counts.at(-1)!, screen: HD, bare: true });
  const out = args.option('--out'),
    results: Measured[] = [];
  for (const s of settings) {
    const m = await measure(s, times, out);
    results.push(m);
    console.log(line(m));
  }
  const local = await localCosts();
  finish('scale', [...results.map(rowOf), ...local.rows], [...barsOf(results), ...local.bars], args.json);
}

async function measure(
  s: Setting,
  times: { readonly slow: number; readonly warmMs: number; readonly windowMs: number },
  out: string | undefined,
): Promise<Measured> {
  if (out) mkdirSync(out, { recursive: true });
  const dir = mkdtempSync(join(out ? resolve(out) : tmpdir(), 'scale-')),
    n = Math.ceil(s.desktops / EACH),
    children: Child[] = [],
    // Five turns take 20 s at the models' pace: the first half of the time before the window is faster, as far as it may be.
    { slow } = times,
    hurry = { factor: Math.min(1, Math.max(0.15, s.desktops / HURRIED / 4 / slow)), ms: 0.6 * times.warmMs };
  const start = (): Child => {
    const c = new Child();
    children.push(c);
    return c;
  };
  try {
    const harness = await Promise.all(
      (['desktops', 'models'] as const).flatMap((role) =>
        Array.from({ length: n }, async (_, i) => {
          const c = start(),
            request = { role, screen: s.screen, socket: join(dir, `${role}-${i}`), seed: i + 1, hurry, slow };
          return { role, c, at: (await c.ask(request, 'ready')).ready };
        }),
      ),
    );
    const of = (role: string): string[] => harness.filter((h) => h.role === role).map((h) => h.at);
    const used = async (): Promise<readonly Used[]> =>
      Promise.all(harness.map(async (h) => (await h.c.ask('used', 'used')).used));
    const daemon = start();
    const request: Request = {
      role: s.bare ? 'bare' : 'daemon',
      dir: join(dir, 'run'),
      desktops: s.desktops,
      screen: s.screen,
      sockets: of('desktops'),
      models: of('models'),
      ...times,
    };
    await daemon.ask(request, 'window');
    const before = await used();
    await daemon.ask('go', 'window');
    const after = await used();
    return figures(s, before, after, (await daemon.ask('go', 'result')).result);
  } finally {
    for (const c of children) c.end();
    rmSync(dir, { recursive: true, force: true });
  }
}

function figures(s: Setting, before: readonly Used[], after: readonly Used[], daemon: DaemonResult): Measured {
  const grown = (f: (u: Used) => number): number => after.reduce((n, u, i) => n + f(u) - f(before[i]!), 0),
    of = (name: string): number => grown((u) => u.detail[name] ?? 0),
    requests = Math.max(1, of('requests')),
    steps = Math.max(1, daemon.steps);
  return {
    ...s,
    daemon,
    utilisation: grown((u) => u.drawnMs) / (s.desktops * daemon.windowMs),
    stepsPerSecond: (1000 * daemon.steps) / daemon.windowMs,
    cpuMsPerStep: daemon.cpuMs / steps,
    mainMsPerStep: daemon.mainMs / steps,
    harnessCpuMsPerStep: grown((u) => u.cpuMs) / steps,
    requestKb: of('bytes') / requests / 1024,
    imagesPerRequest: of('images') / requests,
  };
}

/** Screens of desktops on this machine, at 1920x1080. */
async function localCosts(): Promise<{ readonly rows: Record<string, unknown>[]; readonly bars: Bar[] }> {
  const why = await whyNoLocalDesktops();
  if (why) {
    console.log(`Not measured: desktops on this machine (${why}).`);
    return { rows: [], bars: [] };
  }
  const c = new Child(),
    { local } = await c.ask({ role: 'local', screen: FULL_HD } satisfies Request, 'local'),
    ms = 'ms a screen of a desktop on this machine';
  c.end();
  return {
    rows: (['here', 'threads'] as const).map((how) => ({
      desktops: how === 'here' ? 'local, no threads' : 'local',
      screen: `${FULL_HD.width}x${FULL_HD.height}`,
      'daemon ms/step': round(local[how].all),
      'main thread': round(local[how].main),
      'ms to the screen': round(local[how].reading),
    })),
    bars: [
      bar('local_main_ms_per_step_1080p', local.threads.main, ms, '<= 1'),
      bar('local_cpu_ms_per_step_1080p', local.threads.all, ms, '<= 2.5'),
    ],
  };
}

const round = (x: number, digits = 2): number => Number(x.toFixed(digits));
const rowOf = (m: Measured): Record<string, unknown> => ({
  desktops: m.bare ? `${m.desktops}, bare program` : m.desktops,
  screen: `${m.screen.width}x${m.screen.height}`,
  utilisation: round(m.utilisation, 3),
  'steps/s': round(m.stepsPerSecond, 1),
  'daemon ms/step': round(m.cpuMsPerStep),
  'main thread': round(m.mainMsPerStep),
  'loop p99 ms': round(m.daemon.loopP99, 1),
  'loop longest': round(m.daemon.loopLongest, 0),
  'RSS MB': round(m.daemon.rssMb, 0),
  'heap MB': round(m.daemon.heapMb, 0),
  'harness ms/step': round(m.harnessCpuMsPerStep),
  'request kB': round(m.requestKb, 0),
  images: round(m.imagesPerRequest),
  'frames MB/s': round((1000 * m.daemon.framesMb) / m.daemon.windowMs, 1),
  'new screens %': round(100 * m.daemon.newScreens, 0),
  'journal kB/step': round(m.daemon.journalKb / Math.max(1, m.daemon.steps), 1),
  rollouts: m.daemon.rollouts,
  errors: m.daemon.errors,
  'start s': round(m.daemon.startMs / 1000, 1),
});
const line = (m: Measured): string =>
  Object.entries(rowOf(m))
    .map(([k, v]) => `${k} ${String(v)}`)
    .join(', ');

function barsOf(results: readonly Measured[]): Bar[] {
  const hd = results.filter((m) => m.screen === HD && !m.bare),
    of = (n: number): Measured | undefined => hd.find((m) => m.desktops === n),
    largest = hd.at(-1),
    [at64, at180, at1000] = [of(64), of(180), of(1000)],
    bars: Bar[] = [];
  if (at180) bars.push(bar('utilisation_at_180', at180.utilisation, 'of what the drawn latencies allow', '>= 0.98'));
  if (at1000) bars.push(bar('utilisation_at_1000', at1000.utilisation, 'of what the drawn latencies allow', '>= 0.95'));
  if (largest) {
    bars.push(bar('daemon_cpu_ms_per_step', largest.cpuMsPerStep, `ms at ${largest.desktops} desktops`, '<= 3'));
    bars.push(bar('loop_delay_p99_ms', largest.daemon.loopP99, `ms at ${largest.desktops} desktops`, '<= 20'));
  }
  if (at1000) bars.push(bar('memory_mb_at_1000', at1000.daemon.rssMb, 'MB', '<= 1500'));
  if (at64 && largest && largest !== at64)
    bars.push(bar('growth', largest.cpuMsPerStep / at64.cpuMsPerStep, `x from 64 to ${largest.desktops}`, '<= 1.3'));
  return bars;
}

/** A process of the benchmark; asking one that has failed rejects with what it said. */
class Child {
  readonly #p: ChildProcess;
  readonly #replies: Reply[] = [];
  #wake: (() => void) | undefined;
  #failed: Error | undefined;

  constructor() {
    this.#p = fork(process.argv[1]!, [], {
      env: { ...process.env, SCALE_CHILD: '1' },
      execArgv: ['--enable-source-maps', ...(process.env['SCALE_EXEC']?.split(' ') ?? [])],
    });
    this.#p.on('message', (m: Reply) => {
      if ('failed' in m) this.#failed = new Error(m.failed);
      else this.#replies.push(m);
      this.#wake?.();
    });
    this.#p.on('exit', (code) => {
      this.#failed ??= new Error(`a process of the benchmark ended (${code})`);
      this.#wake?.();
    });
  }

  async ask<K extends string>(request: unknown, kind: K): Promise<Extract<Reply, Record<K, unknown>>> {
    this.#p.send(request as never);
    for (;;) {
      const r = this.#replies.shift();
      if (r && kind in r) return r as Extract<Reply, Record<K, unknown>>;
      if (!r && this.#failed) throw this.#failed;
      if (!r)
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
    }
  }
  end(): void {
    this.#p.kill('SIGKILL');
  }
}

if (process.env['SCALE_CHILD'] === undefined) await main();
else await child();
