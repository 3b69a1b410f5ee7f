import { templateBootstrap } from '../../../runtime/domain/bootstrap.js';
import { wilson } from '../../../runtime/domain/wilson.js';
import type { Count, Counts } from '../lib/evaluated.js';
import { bar, stampLine, type Bar, type RunStamp } from '../lib/report.js';
import { markdown } from '../schedule/report.js';
import type { RowName } from './plan.js';

export interface PageResult {
  readonly page: string;
  readonly trained: Count;
  readonly blind: Count;
  readonly random: Count;
  /** At least `SHARE`, and more than random and blind, which both were measured: their rates lie below the interval of this one. */
  readonly at80: boolean;
}
/** A page counts as solved from here on. */
export const SHARE = 0.8;

const NONE: Count = { episodes: 0, successes: 0 };
const rate = (c: Count): number => (c.episodes === 0 ? 0 : c.successes / c.episodes);

export function pageResults(rows: Readonly<Record<RowName, Counts>>): PageResult[] {
  const pages = [...new Set(Object.values(rows).flatMap((r) => Object.keys(r)))].sort();
  return pages.map((page) => {
    const of = (row: RowName): Count => rows[row][page] ?? NONE,
      [trained, blind, random] = [of('trained'), of('blind'), of('random')],
      { low } = wilson(trained.successes, trained.episodes);
    return {
      page,
      trained,
      blind,
      random,
      at80:
        // A control that was not measured is none that failed.
        blind.episodes > 0 &&
        random.episodes > 0 &&
        rate(trained) >= SHARE &&
        low > Math.max(rate(blind), rate(random)),
    };
  });
}

/** Pages that count where neither control solves them as often. */
export const solvedPages = (trained: Counts): string[] =>
  Object.keys(trained)
    .filter((page) => rate(trained[page]!) >= SHARE)
    .sort();

/** Whether the controls were measured on all pages, or on those that the trained policy solves. */
export type Controls = 'all' | 'solved';

export function miniwobBars(pages: readonly PageResult[], controls: Controls): Bar[] {
  const mean = (of: (p: PageResult) => Count): number =>
    pages.reduce((sum, p) => sum + rate(of(p)), 0) / Math.max(1, pages.length);
  return [
    bar('tasks_at_80', pages.filter((p) => p.at80).length, `of ${pages.length} pages`, '>= 8'),
    // No goal was set for the mean: what it must beat is a policy that does not look, where that was measured.
    ...(controls === 'all'
      ? [
          bar(
            'mean_success',
            mean((p) => p.trained),
            `mean over ${pages.length} pages; blind ${mean((p) => p.blind).toFixed(3)}, random ${mean((p) => p.random).toFixed(3)}`,
            `>= ${Math.max(
              mean((p) => p.blind),
              mean((p) => p.random),
            ).toFixed(3)}`,
          ),
        ]
      : []),
  ];
}
/**
 * Over all pages, whatever is held against it, with the interval of a mean over pages of which these are a sample (95 %).
 */
export function meanSuccess(pages: readonly PageResult[]): Record<'trained' | 'low' | 'high', number> {
  const { mean, low, high } = templateBootstrap([Object.fromEntries(pages.map((p) => [p.page, p.trained]))]);
  return { trained: mean, low, high };
}

const cell = (c: Count): string => {
  const { low, high } = wilson(c.successes, c.episodes);
  return c.episodes === 0
    ? '–'
    : `${(100 * rate(c)).toFixed(0)} [${(100 * low).toFixed(0)}, ${(100 * high).toFixed(0)}]`;
};

export function miniwobPage(
  pages: readonly PageResult[],
  how: {
    readonly minutes: number;
    readonly seed: number;
    readonly quick: boolean;
    readonly controls: Controls;
    /** Seeds of each page that were left out: the first ones. */
    readonly skip: number;
    readonly made: RunStamp;
  },
): string {
  const { trained, low, high } = meanSuccess(pages),
    percent = (x: number): string => (100 * x).toFixed(1),
    counted = pages.filter((p) => p.at80).length;
  const sorted = [...pages].sort((a, b) => rate(b.trained) - rate(a.trained) || (a.page < b.page ? -1 : 1));
  return [
    '# MiniWoB++',
    '',
    `One embedded policy, trained for ${how.minutes} minutes on all pages at once (seed ${how.seed}), without demonstrations of them, then measured on other seeds of each${how.skip > 0 ? `, without the first ${how.skip} of them, which an earlier record has` : ''}, the most probable choice always${how.quick ? ' (a short look, no figures to quote)' : ''}. Success: the page's raw reward is above 0. Blind: the same policy, its screen blanked. Random: every possible choice as probable as any other.${how.controls === 'all' ? '' : ' The two were measured on the pages that the trained policy solves, since no other can count.'} Intervals: Wilson, 95 %.`,
    '',
    `${counted} of ${pages.length} pages count at ${100 * SHARE} % (goal 20, bar 8); mean over all pages ${percent(trained)} % [${percent(low)}, ${percent(high)}] (95 %, as a sample of pages). ${stampLine(how.made)}`,
    '',
    markdown(
      ['page', 'trained %', 'blind %', 'random %', 'episodes', `at ${100 * SHARE} %`],
      sorted.map((p) => [
        p.page.replace('miniwob/', ''),
        cell(p.trained),
        cell(p.blind),
        cell(p.random),
        String(p.trained.episodes),
        p.at80 ? 'yes' : '',
      ]),
    ),
    '',
  ].join('\n');
}
