import { judgeBridged } from '../../../runtime/tasks/bridge/judge.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { TaskContext } from '../../../runtime/tasks/context.js';
import { metrics } from '../../../runtime/tasks/metrics/index.js';
import { evaluate, pack } from '../../../runtime/tasks/metrics/job.js';
import { FileValue, isFile, isList, type Value } from '../../../runtime/tasks/values.js';
import { FakeDesktop, never } from '../../helpers/tasks/fakeDesktop.js';
import type { MetricCase } from '../../helpers/tasks/metricCase.js';
import { metricCases } from '../../helpers/tasks/metricCases.js';

/** One crafted candidate, judged by our own metric and by OSWorld's. */
export interface Agreement {
  readonly metric: string;
  readonly what: string;
  /** A score, or `error`: the task file is wrong, or the evaluators cannot judge. */
  readonly ours: number | 'error';
  readonly theirs: number | 'error';
  readonly agrees: boolean;
  /** Why the two differ on purpose; absent otherwise. */
  readonly because?: string;
}

/**
 * Where ours is stricter or more careful on purpose: by metric, or by metric and case. Anything else that differs is a
 * disagreement.
 */
const ON_PURPOSE: Readonly<Record<string, string>> = {
  'check_include_exclude: text of a file': "a file is its text here; OSWorld's looks at its path",
  'check_include_exclude: not text': "a file is its text here; OSWorld's looks at its path",
  'check_direct_json_object: lists in any order': "OSWorld's fails on its own option and gives 0",
  'check_gnome_favorite_apps: empty': "OSWorld's evaluates the text as Python and raises",
  'check_gnome_favorite_apps: any order, broken': "OSWorld's evaluates the text as Python and raises",
  'check_gnome_favorite_apps: empty, broken': "OSWorld's evaluates the text as Python and raises",
  'check_gnome_favorite_apps: not a list': "OSWorld's evaluates the text as Python and raises",
  'check_thunderbird_folder: one missing': "OSWorld's passes over every message: any two folders are equal",
  'check_thunderbird_folder: nor do they hide others': "OSWorld's passes over every message: any two folders are equal",
  'check_thunderbird_folder: status counts': "OSWorld's passes over every message: any two folders are equal",
};
const WRONG_TASK = 'the task file is wrong: an error here, a score there';

/** Every crafted candidate of every metric of ours. */
export async function compareAll(e: Evaluators, onCase: (a: Agreement) => void): Promise<Agreement[]> {
  const out: Agreement[] = [];
  for (const c of [...metricCases, ...broken()].filter((x) => e.metrics.has(x.metric))) {
    const a = await compare(e, c);
    out.push(a);
    onCase(a);
  }
  return out;
}

/** Metrics that are given the rule first. */
const RULE_FIRST = new Set(['is_in_vm_clickboard', 'is_vlc_fullscreen']);
/** Of every metric one that passes, with what it is given broken: bytes that are no text of any kind, or other words. */
function broken(): MetricCase[] {
  const bytes = (name: string): FileValue => new FileValue(name, Buffer.from('fffe80000102feff504b0304', 'hex')),
    spoil = (v: Value): Value =>
      isFile(v)
        ? bytes(v.name)
        : isList(v) && v.some(isFile)
          ? v.map(spoil)
          : typeof v === 'string'
            ? '\u0001{['
            : null;
  const first = new Map(metricCases.filter((c) => c.score === 1).map((c) => [c.metric, c]));
  return [...first.values()].map((c) => ({
    ...c,
    what: `${c.what}, broken`,
    score: 0,
    ...(RULE_FIRST.has(c.metric) ? { expected: spoil(c.expected ?? null) } : { result: spoil(c.result) }),
  }));
}

/** Metrics without a candidate of each kind, which the table must not have. */
export function incomplete(): string[] {
  const all = [...metricCases, ...broken()],
    has = (metric: string, ok: (c: MetricCase) => boolean): boolean => all.some((c) => c.metric === metric && ok(c));
  return Object.keys(metrics).filter(
    (m) =>
      !has(m, (c) => c.score === 1) ||
      !has(m, (c) => typeof c.score === 'number' && c.score < 1 && !c.what.endsWith(', broken')) ||
      !has(m, (c) => c.what.endsWith(', broken')),
  );
}

/** Metrics of ours that these evaluators do not have. */
export const notCompared = (e: Evaluators): string[] =>
  [...new Set(metricCases.map((c) => c.metric))].filter((m) => !e.metrics.has(m)).sort();

async function compare(e: Evaluators, c: MetricCase): Promise<Agreement> {
  const ours = await evaluate({
    func: c.metric,
    result: pack(c.result, c.metric),
    expected: c.expected === undefined ? undefined : pack(c.expected, c.metric),
    options: c.options,
    desktopGold: false,
  });
  const mine = 'fault' in ours ? 'error' : ours.score,
    theirs = await bridged(e, c),
    close =
      mine === theirs || (typeof mine === 'number' && typeof theirs === 'number' && Math.abs(mine - theirs) < 1e-6),
    because = close
      ? undefined
      : (ON_PURPOSE[`${c.metric}: ${c.what}`] ?? (c.score === 'throws' ? WRONG_TASK : undefined));
  return {
    metric: c.metric,
    what: c.what,
    ours: mine,
    theirs,
    agrees: close || because !== undefined,
    ...(because === undefined ? {} : { because }),
  };
}

async function bridged(e: Evaluators, c: MetricCase): Promise<number | 'error'> {
  const cache = new Map<string, Buffer>(),
    result = named(c.result, 'result', cache),
    expected = c.expected === undefined ? undefined : named(c.expected, 'gold', cache),
    ctx = { desktop: new FakeDesktop(), cache, signal: never, task: 'crafted' } as unknown as TaskContext;
  try {
    const b = await judgeBridged(
      e,
      ctx,
      c.metric,
      { value: result },
      expected === undefined ? undefined : { value: expected },
      c.options,
    );
    return b.score;
  } catch {
    return 'error';
  }
}

/** Files under names of their own, as a task's `dest` gives them. */
function named(v: Value, name: string, cache: Map<string, Buffer>): Value {
  if (isFile(v)) {
    cache.set(name, v.data);
    return new FileValue(name, v.data);
  }
  return isList(v) ? v.map((x, i) => named(x, `${name}-${i}`, cache)) : v;
}

export function agreementTable(all: readonly Agreement[]): string {
  const show = (s: number | 'error'): string => (s === 'error' ? s : String(Math.round(s * 1e4) / 1e4));
  return [
    '| metric | candidate | ours | OSWorld | |',
    '| --- | --- | --- | --- | --- |',
    ...all.map(
      (a) =>
        `| ${a.metric} | ${a.what} | ${show(a.ours)} | ${show(a.theirs)} | ${a.because ?? (a.agrees ? '' : '**differs**')} |`,
    ),
  ].join('\n');
}
