import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunFile } from '../../../runtime/config/index.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import { endAll, startWith } from '../../helpers/run/cli.js';
import { resultOf } from '../../helpers/run/trained.js';
import { arg, environment, found, load, note, optionsOf } from './context.js';

const PART = 'quick start';
interface Success {
  readonly successes: number;
  readonly episodes: number;
  readonly rate: number;
  readonly low: number;
  readonly high: number;
}
interface Trained {
  /** Greedy, on held-out tasks, with Wilson's 95 % interval, by where in the run it was measured. */
  readonly success: Readonly<Record<string, Success>>;
  readonly [what: string]: unknown;
}

/** The quick start's preset, with desktops of the cluster; and the same beside it with those of another provider. */
export async function quickstart(): Promise<void> {
  const providers = [...(arg.quickstart ? ['kubernetes'] : []), ...(arg.beside ? [arg.beside] : [])];
  if (providers.length === 0) return note(PART, found[PART] ?? 'not run: no --quickstart');
  const before = found[PART],
    all = { ...(typeof before === 'object' ? (before as Record<string, Trained>) : {}) };
  for (const name of providers) all[name] = await trained(name as 'kubernetes' | 'docker' | 'local');
  const own = all['kubernetes']?.success['final'],
    other = all['docker']?.success['final'];
  note(PART, {
    ...all,
    ...(own && other ? { 'in the interval of Docker': own.rate >= other.low && own.rate <= other.high } : {}),
  });
}

async function trained(provider: 'kubernetes' | 'docker' | 'local'): Promise<Trained> {
  const dir = await mkdtemp(join(tmpdir(), 'dart-kubernetes-quickstart-')),
    file = join(dir, 'run.json'),
    began = load();
  const run: RunFile = {
    preset: 'quickstart',
    desktops: { provider, ...(provider === 'kubernetes' ? { kubernetes: optionsOf({ spares: 1 }) } : {}) },
  };
  await writeFile(file, JSON.stringify(run));
  try {
    const more = arg.minutes === undefined ? [] : ['--minutes', arg.minutes],
      command = startWith(environment, 'train', file, '--runs', join(dir, 'runs'), '--json', ...more),
      { code, stderr } = await command.ended;
    if (code !== 0) throw new Error(`the quick start ended with code ${code}: ${stderr.slice(-1000)}`);
    const { points, rollouts, version, stopped } = resultOf(command);
    return {
      minutes: arg.minutes === undefined ? 'of the preset' : Number(arg.minutes),
      load: { before: began, after: load() },
      stopped,
      rollouts,
      version,
      success: Object.fromEntries(points.map((p) => [p.label, successOf(p)])),
    };
  } finally {
    await endAll();
    await rm(dir, { recursive: true, force: true });
  }
}

const successOf = ({ successes, episodes }: { successes: number; episodes: number }): Success => {
  const { rate, low, high } = wilson(successes, episodes),
    round = (x: number): number => Math.round(x * 1000) / 1000;
  return { successes, episodes, rate: round(rate), low: round(low), high: round(high) };
};
