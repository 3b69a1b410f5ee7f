import { QUICKSTART_FAMILIES } from '../../../runtime/config/index.js';
import { dotChart } from '../lib/chart.js';
import type { RunResult } from '../lib/experiments.js';
import { successInterval } from '../lib/interval.js';
import { bar } from '../lib/report.js';
import type { Written } from '../lib/session.js';
import { barLines, markdown } from '../schedule/report.js';

/** A template is blind if a policy trained on blank screens with the same budget solves this share of its episodes. */
export const BLIND_SHARE = 0.2;

export interface BlindTemplate {
  readonly family: string;
  readonly episodes: number;
  readonly successes: number;
  readonly rate: number;
  readonly low: number;
  readonly high: number;
  readonly blind: boolean;
}

/** Every template with what it came to over all seeds, the most blind first. */
export function blindTemplates(results: readonly RunResult[]): BlindTemplate[] {
  const seeds = new Map<string, { episodes: number; successes: number }[]>();
  for (const r of results)
    for (const [family, c] of Object.entries(r.measure.evals.findLast((e) => e.label === 'final')?.perFamily ?? {}))
      seeds.set(family, [...(seeds.get(family) ?? []), c]);
  return [...seeds]
    .map(([family, counts]): BlindTemplate => {
      const sum = (of: 'episodes' | 'successes'): number => counts.reduce((n, c) => n + c[of], 0),
        rate = sum('successes') / Math.max(1, sum('episodes')),
        { low, high } = successInterval(counts) ?? { low: 0, high: 1 };
      return {
        family,
        episodes: sum('episodes'),
        successes: sum('successes'),
        rate,
        low,
        high,
        blind: rate >= BLIND_SHARE,
      };
    })
    .sort((a, b) => b.rate - a.rate || (a.family < b.family ? -1 : 1));
}

/** Counted among those that need to see, though their interval reaches the share from which on a template is blind. */
export const isUnsure = (t: BlindTemplate): boolean => !t.blind && t.high >= BLIND_SHARE;
function unsureLine(sighted: readonly BlindTemplate[]): string[] {
  const unsure = sighted.filter(isUnsure).map((t) => `\`${t.family.replace('desk/', '')}\``);
  return unsure.length === 0
    ? []
    : [
        `Of the ${sighted.length} that need to see, ${unsure.length} cannot be told from ${100 * BLIND_SHARE} %: ${unsure.join(', ')}.`,
        '',
      ];
}

export function blindReport(
  results: readonly RunResult[],
  failed: readonly string[],
  how: { readonly quick: boolean; readonly minutes: number },
): Written {
  const templates = blindTemplates(results),
    sighted = templates.filter((t) => !t.blind),
    bars = [bar('templates_that_need_to_see', sighted.length, `of ${templates.length}`, '>= 14')],
    percent = (x: number): string => (100 * x).toFixed(0);
  return {
    bars,
    rows: templates.map((t) => ({ section: 'template', ...t })),
    svg: dotChart({
      title: 'Success of a policy that was trained and tested on blank screens',
      unit: '%',
      from: 0,
      to: 100,
      mark: 100 * BLIND_SHARE,
      format: (x) => x.toFixed(0),
      rows: templates.map((t) => ({
        label: t.family.replace('desk/', ''),
        at: { mean: 100 * t.rate, half: NaN, n: t.episodes },
        ...(t.blind ? { colour: '#b35806' } : {}),
      })),
    }),
    markdown: [
      '# Templates that need no eyes',
      '',
      `The quick start with one even grey in place of every screen, ${how.minutes} minutes for each part of ${Math.min(templates.length, QUICKSTART_FAMILIES.length)} templates${how.quick ? ' (a short look, no figures to quote)' : ''}. A template is blind if the policy then solves ${percent(BLIND_SHARE)} % of its episodes or more, on other arrangements of the words of training. Intervals are the wider of a bootstrap over seeds and episodes and of Student's t over seeds, and none is narrower than Wilson's of one seed's episodes, which it is with one seed.`,
      '',
      barLines(bars),
      '',
      ...unsureLine(sighted),
      markdown(
        ['template', 'success %', '[95 %]', 'episodes', ''],
        templates.map((t) => [
          t.family.replace('desk/', ''),
          percent(t.rate),
          `[${percent(t.low)}, ${percent(t.high)}]`,
          String(t.episodes),
          t.blind ? 'blind' : 'needs to see',
        ]),
      ),
      '',
      ...(failed.length > 0 ? ['## Failed', '', ...failed.map((f) => `- ${f}`), ''] : []),
    ].join('\n'),
  };
}
