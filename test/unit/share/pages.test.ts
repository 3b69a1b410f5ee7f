import { createCipheriv, createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { StepView, TrajectoryView } from '../../../runtime/domain/index.js';
import { encodePng, toScanlines } from '../../../runtime/data/store/png.js';
import type { RunPageData } from '../../../runtime/share/runPage.js';
import { pageText, text } from '../../../runtime/share/html.js';
import { runPage } from '../../../runtime/share/runPage.js';
import { logarithmic, timeTicks, ticks } from '../../../runtime/share/plot.js';
import type { RunFigures } from '../../../runtime/run/figures.js';
import { trajectoryPage } from '../../../runtime/share/trajectoryPage.js';
import { step, view } from '../../helpers/pages/trajectories.js';

const EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e&lt;';
const none = () => Promise.resolve(undefined);
const frame = { hash: 'a'.repeat(64), width: 640, height: 400 };
/** What is markup in a page: without its style, its script and what stands in quotes, of which it writes no others. */
const markup = (html: string): string =>
  html
    .replace(/<style>[\s\S]*?<\/style>/, '')
    .replace(/<script>\(\(\) =>[\s\S]*?\}\)\(\);<\/script>/, '')
    .replace(/"[^"]*"/g, '""');
const foreign = /<img|<script|<[^>]*\bon\w+=|<[^>]*(src|href)=[^"]|\u202e/i;

function hostile(): TrajectoryView {
  const s = step(0, { action: { type: 'type', text: EVIL }, frame, sure: 0.5, thought: EVIL }, undefined);
  const bad: StepView = {
    ...s,
    // What a file can hold where the type says a number or a name.
    entropy: EVIL as unknown as number,
    origin: EVIL as unknown as 'policy',
    actions: [
      ...s.actions,
      { type: 'click', at: { x: EVIL as unknown as number, y: 3 } },
      { type: EVIL as unknown as 'wait' },
    ],
    tokens: [
      {
        label: EVIL,
        logprob: -0.1,
        entropy: 0.3,
        alternatives: [{ label: EVIL, probability: EVIL as unknown as number }],
      },
    ],
    rejected: [{ text: EVIL, reason: EVIL }],
    version: EVIL as unknown as number,
    finish: EVIL,
  };
  const v = view([], '/nowhere', { rollout: EVIL });
  return {
    ...v,
    row: {
      ...v.row,
      instruction: EVIL,
      task: EVIL,
      outcome: EVIL as unknown as 'success',
      cap: EVIL as unknown as number,
      versions: [EVIL, EVIL] as unknown as [number, number],
    },
    steps: [bad],
    report: { checks: [{ what: EVIL, expected: EVIL, found: EVIL, score: EVIL as unknown as number }] },
  };
}

/** Figures of a run that hold `n` for every number. */
const figures = (n: number): RunFigures =>
  ({
    at: EVIL,
    commit: EVIL,
    machine: { cpu: EVIL, cores: n },
    points: [{ label: 'untrained', version: n, episodes: n, successes: n, errors: n, perFamily: {} }],
    rows: [
      { split: 'heldout', episodes: n, successes: n, errors: n, perFamily: { [EVIL]: { episodes: n, successes: n } } },
    ],
    failures_removed_by_rl_interval: { mean: n, low: n, high: n },
  }) as unknown as RunFigures;

describe('pages for others', () => {
  it('take nothing of a task, a desktop, a model or a file for markup', async () => {
    const { html } = await trajectoryPage(hostile(), { read: none, runName: EVIL });
    expect(markup(html)).not.toMatch(foreign);
    expect(html).not.toMatch(/javascript:|https?:/);
    expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;');
  });

  it('say how an answer ended that did not stop by itself', async () => {
    const s = step(0, { action: { type: 'wait' }, frame, sure: 0.5 }, undefined),
      page = async (finish?: string): Promise<string> =>
        (await trajectoryPage({ ...view([], '/'), steps: [{ ...s, ...(finish ? { finish } : {}) }] }, { read: none }))
          .html;
    expect(await page('length')).toContain('cut off: no tokens were left');
    expect(await page('abort')).toMatch(/Answer ended<[\s\S]{0,40}abort/);
    expect(await page()).not.toContain('Answer ended');
  });

  it('carry a policy that allows the hashes of their own style and script, and nothing else', () => {
    const html = pageText({ title: 'x', body: '', style: 'p{}', script: 'void 0' }),
      hash = (s: string): string => `'sha256-${createHash('sha256').update(s).digest('base64')}'`,
      policy = /Content-Security-Policy" content="([^"]*)"/.exec(html)![1]!;
    expect(policy.split('; ')).toEqual([
      "default-src 'none'",
      'img-src data:',
      `style-src ${hash('p{}')}`,
      `script-src ${hash('void 0')}`,
      "base-uri 'none'",
      "form-action 'none'",
    ]);
    expect(html.indexOf('Content-Security-Policy')).toBeLessThan(html.indexOf('<style>'));
    expect(pageText({ title: '', body: '', style: '' })).not.toContain('script');
    expect(text(`a\u0000b\u202ec`)).toBe('a\ufffdb\ufffdc');
  });

  it('of a rollout stay below 5 MB, whatever its screens are and however many', async () => {
    const noise = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)),
      files = new Map<string, Buffer>(),
      steps = await Promise.all(
        Array.from({ length: 24 }, async (_, i) => {
          const data = noise.update(Buffer.alloc(640 * 400 * 4)),
            hash = createHash('sha256').update(data).digest('hex');
          files.set(hash, await encodePng(await toScanlines(data, 640, 400, () => undefined), 640, 400));
          return step(
            i,
            { action: { type: 'wait' }, frame: { ...frame, hash }, sure: 0.5, thought: 'x'.repeat(20_000) },
            undefined,
          );
        }),
      ),
      page = await trajectoryPage({ ...view([], '/'), steps }, { read: (f) => Promise.resolve(files.get(f.hash)) });
    expect(Buffer.byteLength(page.html)).toBeLessThan(5_000_000);
    expect(page).toMatchObject({ steps: 24, scale: 4, without: 0 });
    expect(page.html).toContain('4 times smaller');
  });

  it('of a run lead with the evaluation, and say what was left when it ended', async () => {
    const at = Date.UTC(2026, 10, 20, 12),
      evals = [0, 32].map((successes, i) => ({
        label: i === 0 ? 'untrained' : EVIL,
        at: at + i * 60_000,
        version: i,
        episodes: 64,
        successes,
        errors: 0,
        low: i * 0.38,
        high: 0.06 + i * 0.56,
        perFamily: {},
      })),
      data: RunPageData = {
        detail: {
          summary: {
            run: '/home/me/secret/run',
            id: 'run-1',
            name: EVIL,
            createdAt: at,
            state: 'finished',
            rollouts: 90,
            version: 1,
            evals: [0, 0.5],
            lastEval: evals[1],
          },
          ledger: {
            generated: 90,
            begun: 88,
            trained: 70,
            inFlight: 5,
            byState: {},
            retired: { 'no-variance': 15 },
            closes: true,
          },
          evals,
          tasks: [{ family: EVIL, title: EVIL, rollouts: 8, successes: 4, spark: [] }],
          timeline: { phases: [], outages: [] },
        },
        curves: [],
        series: [{ name: 'update.loss', at: [at, at + 1000], value: [1, 0.5] }],
        runFile: EVIL,
        examples: { success: [hostile()], failure: [] },
        madeAt: at + 100_000,
      },
      { html } = await runPage(data, none);
    expect(markup(html)).not.toMatch(foreign);
    expect(html).not.toContain('<script');
    expect(html).not.toContain('/home/me/secret');
    expect(html.indexOf('50 % [38, 62]')).toBeLessThan(html.indexOf('Curves'));
    expect(html).toContain('not trained when the run ended');
    expect(html).toContain('all rewards of its group equal');
    expect(html).toMatch(/aria-label="Success\. evaluation, fixed tasks, 95 %: 50 % at the end\."/);

    // What a journal can hold where the type says a number.
    const bad = EVIL as unknown as number,
      { detail } = data,
      { html: worse } = await runPage(
        {
          ...data,
          detail: {
            ...detail,
            summary: { ...detail.summary, rollouts: bad, version: bad, seed: bad },
            ledger: {
              ...detail.ledger,
              generated: bad,
              begun: bad,
              trained: bad,
              inFlight: bad,
              retired: { [EVIL]: bad },
            },
            evals: [{ ...evals[1]!, version: bad, errors: bad }],
            tasks: [{ ...detail.tasks[0]!, rollouts: 1, evaluation: { rate: 0.5, ...evals[1]!, episodes: bad } }],
          },
          figures: figures(bad),
        },
        none,
      );
    expect(markup(worse)).not.toMatch(foreign);
    expect(worse).toContain('v&quot;&gt;&lt;img');
  });
});

describe('ticks of a chart', () => {
  it('come to an end for values that differ by less than a step of a number', () => {
    for (const [low, high] of [
      [1e16, 1e16 + 2],
      [-1e16 - 2, -1e16],
      [1e300, 1e300 * (1 + 1e-15)],
      [-Number.MAX_VALUE, Number.MAX_VALUE],
      [0, 5e-324],
    ] as const)
      expect(ticks(low, high).length, `${low} to ${high}`).toBeLessThan(20);
    expect(ticks(1e16, 1e16 + 2)).toEqual([1e16]);
    expect(logarithmic([1, Infinity]).ticks.length).toBeLessThan(20);
  });
  it('by powers of ten: one value that is far away leaves the others apart, and zeros lie at the bottom', () => {
    const { at, ticks: powers } = logarithmic([0.003, 0.03, 131, 1e-13, 0, NaN]);
    expect(powers.map(Math.log10)).toEqual([-3, -2, -1, 0, 1, 2, 3]);
    expect([at(1000), at(0.001), at(1e-13), at(0)]).toEqual([1, 0, 0, 0]);
    expect(at(0.03) - at(0.003)).toBeCloseTo(1 / 6);
    expect(logarithmic([0.02]).ticks).toEqual([0.01, 0.1]);
    expect(logarithmic([0, 0]).ticks.length).toBeGreaterThan(0);
  });
  it('are round, inside, and no two alike', () => {
    expect(ticks(0, 1)).toEqual([0, 0.25, 0.5, 0.75, 1]);
    expect(ticks(5, 5)).toEqual([5]);
    expect(timeTicks(0, 311_000)).toEqual([0, 60_000, 120_000, 180_000, 240_000, 300_000]);
    expect(ticks(-0.3, 0.3)).toEqual([-0.2, 0, 0.2]);
    const day = 86_400_000;
    expect(timeTicks(0, 3 * day)).toEqual([0, 0.5, 1, 1.5, 2, 2.5, 3].map((d) => d * day));
  });
});
