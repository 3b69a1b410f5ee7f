import { quantile } from '../../../runtime/domain/index.js';
import { bar, type Bar } from '../lib/report.js';
import type { BrowserSandbox } from './browser.js';
import type { DesktopTask, LeftOut } from './desktops.js';
import { right, type JudgedTask } from './judged.js';
import type { ReplayedTask } from './replayed.js';
import { whyUntouched } from './untouched.js';

/** OSWorld's fixed waits of one task, seconds: 60 after the reset, 20 before judging, 3 around the container; boot not counted. */
const OSWORLD_WAITS = 83;

export interface Measured {
  readonly judged: readonly JudgedTask[];
  readonly candidates: number;
  readonly disagreements: number;
  readonly replayed: readonly ReplayedTask[];
  readonly desktops: readonly DesktopTask[];
  readonly leftOut: readonly LeftOut[];
  /** In Docker. */
  readonly browsers: readonly BrowserSandbox[];
}

const part = (of: number, n: number): number => (of === 0 ? 0 : n / of);
const share = (all: readonly unknown[], n: number): number => part(all.length, n);
const solved = (t: DesktopTask): boolean => t.solved !== undefined && 'reward' in t.solved && t.solved.reward === 1;

/** What is measured, in numbers; bars are those of them that must hold. */
export function barsOf(m: Measured): Bar[] {
  const due = m.judged.filter((t) => !t.account),
    atRest = due.filter((t) => !t.live);
  return [
    ...(m.judged.length === 0
      ? []
      : [
          bar('judged_share', share(due, due.filter((t) => t.judged).length), 'of tasks', '>= 0.98'),
          bar(
            'judged_share_without_live_web',
            share(atRest, atRest.filter((t) => t.judged).length),
            'of tasks',
            '>= 0.98',
          ),
          bar('candidates_right', m.judged.filter(right).length, 'tasks', '>= 40'),
          bar('native_bridge_disagreements', m.disagreements, `of ${m.candidates} candidates`, '<= 0'),
        ]),
    ...replayBars(m.replayed),
    ...desktopBars(m.desktops, m.leftOut.length),
    ...m.browsers
      .filter((b) => b.network === 'internet')
      .map((b) =>
        bar(
          'chromium_sandboxed_share_with_network',
          part(b.renderers, b.sandboxed),
          `of ${b.renderers} renderers`,
          '>= 1',
        ),
      ),
  ];
}

const replayBars = (all: readonly ReplayedTask[]): Bar[] =>
  all.length === 0
    ? []
    : [
        bar(
          'recorded_states_judged_share',
          share(all, all.filter((t) => t.reward !== undefined).length),
          `of ${all.length} states`,
          '>= 0.98',
        ),
        bar(
          'recorded_states_judged_alike',
          share(all, all.filter((t) => t.reward === t.recorded).length),
          `of ${all.length} states`,
          '>= 0.98',
        ),
      ];

function desktopBars(all: readonly DesktopTask[], leftOut: number): Bar[] {
  if (all.length === 0) return [];
  const up = all.filter((t) => t.setUp),
    overhead = up.map((t) => (t.resetMs + t.setupMs + t.judgeMs) / 1000),
    scripted = all.filter((t) => t.solved);
  return [
    bar('setup_share', part(all.length + leftOut, up.length), `of ${all.length + leftOut} tasks`, '>= 0.9'),
    bar(
      'desktop_judged_share',
      share(up, up.filter((t) => t.reward !== undefined).length),
      `of ${up.length} tasks`,
      '>= 0.98',
    ),
    bar('overhead_seconds_per_task_p95', quantile(overhead, 0.95) ?? NaN, 's', '<= 6'),
    bar('overhead_vs_osworld_waits', OSWORLD_WAITS / (quantile(overhead, 0.5) ?? NaN), 'times', '>= 20'),
    bar(
      'reset_p50_ms',
      quantile(
        all.map((t) => t.resetMs),
        0.5,
      ) ?? NaN,
      'ms',
      '<= 500',
    ),
    bar(
      'reset_pixel_identical_share',
      share(all, all.filter((t) => t.resetAlike).length),
      `of ${all.length} resets`,
      '>= 1',
    ),
    bar('do_nothing_successes', all.filter((t) => t.reward === 1 && !whyUntouched(t.id)).length, 'tasks', '<= 0'),
    bar('scripted_solutions', scripted.length, 'tasks', '>= 24'),
    bar('scripted_successes', share(scripted, scripted.filter(solved).length), `of ${scripted.length} tasks`, '>= 1'),
  ];
}

/** One row for each task and kind of measurement. */
export const rowsOf = (m: Measured): Record<string, unknown>[] => [
  ...m.judged.map(({ ms: _, ...t }) => ({ section: 'made desktops', ...t })),
  ...m.replayed.map((t) => ({ section: 'recorded desktops', ...t })),
  ...m.desktops.map((t) => ({ section: 'real desktops', ...t })),
  ...m.leftOut.map((t) => ({ section: 'not set up here', ...t })),
  ...m.browsers.map((t) => ({ section: 'browser in Docker', ...t })),
];
