import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { random, type FrameRef, type Step } from '../../../runtime/domain/index.js';
import type { StepExtra } from '../../../runtime/data/events.js';
import { encodeRecord } from '../../../runtime/data/store/record.js';
import { remoteEpisode } from '../../helpers/policy/remoteEpisode.js';

const WORDS =
  'the button opens a menu with entries for this document so I click on it and wait until window list shows name field save as dialog then type new folder press enter check result'.split(
    ' ',
  );

/** Episodes of a model that says 60 to 100 tokens a step, with the newest five screenshots in its prompts. */
function episodes(): { readonly step: Step; readonly extra: StepExtra }[] {
  const r = random('record cost');
  return Array.from({ length: 12 }, (_, seed) => {
    const turns = Array.from({ length: 30 }, (_, i) => {
      const words = Array.from({ length: 45 + r.int(38) }, () => WORDS[r.int(WORDS.length)]!);
      return {
        frame: frame(seed * 100 + i),
        actions: [{ type: 'click', at: { x: r.int(1280), y: r.int(720) } } as const],
        text: `Thought: ${words.join(' ')}.\nAction: click(start_box='(${r.int(1280)},${r.int(720)})')`,
      };
    });
    const { steps, extras } = remoteEpisode(turns, { images: 5, seed });
    return steps.map((step, i) => ({ step, extra: extras[i]! }));
  }).flat();
}
const frame = (n: number): FrameRef => ({ hash: n.toString(16).padStart(64, '0'), width: 1280, height: 720 });

const bytes = (step: Partial<Step>, extra: StepExtra): number =>
  encodeRecord(1, { type: 'rollout.step', rollout: 'r-000102', step, extra }).length;

it('what a step of a language model costs in the journal is what the page says', () => {
  const steps = episodes(),
    mean = (of: (s: (typeof steps)[number]) => number): number =>
      steps.reduce((sum, s) => sum + of(s), 0) / steps.length,
    /** What a record would lack without a part. */
    cost = (without: (s: (typeof steps)[number]) => number): number => mean((s) => bytes(s.step, s.extra) - without(s));
  const tokens = mean((s) => s.step.tokens!.ids!.length);
  expect(tokens).toBeGreaterThan(60);
  expect(tokens).toBeLessThan(100);
  const figures: Record<string, number> = {
    'tokens of the answer': tokens,
    'alternatives at one token': mean((s) => s.extra.packed!.labels.length / s.extra.packed!.counts.length),
    'prompt and token ids': cost(({ step: { prompt: _p, tokens, ...rest }, extra }) =>
      bytes({ ...rest, tokens: { ...tokens!, ids: undefined } as never }, extra),
    ),
    'log-probs': cost(({ step, extra }) =>
      bytes({ ...step, tokens: { ...step.tokens!, logprobs: undefined } as never }, extra),
    ),
    entropies: cost(({ step, extra }) =>
      bytes({ ...step, tokens: { ...step.tokens!, entropies: undefined } as never }, extra),
    ),
    'why it ended': cost(({ step, extra }) =>
      bytes({ ...step, tokens: { ...step.tokens!, finish: undefined } as never }, extra),
    ),
    'tokens in words': cost(({ step, extra: { labels: _l, ...extra } }) => bytes(step, extra)),
    alternatives: cost(({ step, extra: { packed: _a, ...extra } }) => bytes(step, extra)),
    'whole record': mean((s) => bytes(s.step, s.extra)),
  };
  console.log(JSON.stringify(figures, (_, v: unknown) => (typeof v === 'number' ? Number(v.toFixed(2)) : v), 1));
  expect(figures['prompt and token ids']).toBeLessThan(1024);

  const page = readFileSync('runtime/policy/README.md', 'utf8');
  for (const [what, figure] of Object.entries(figures)) {
    const said = new RegExp(`\\| ${what} \\| ([\\d.,]+) \\|`).exec(page)?.[1]?.replace(',', '');
    expect(Number(said), `${what}: ${figure}`).toBeGreaterThan(figure * 0.97);
    expect(Number(said), `${what}: ${figure}`).toBeLessThan(figure * 1.03);
  }
});

it('what 100,000 steps cost is what the page says', () => {
  const { rows, bars } = JSON.parse(readFileSync('test/bench/results/records/records.json', 'utf8')) as {
      rows: { part?: string; bytesAStep?: number; steps?: number; imagesAPrompt?: number }[];
      bars: { name: string; holds: boolean }[];
    },
    page = readFileSync('runtime/policy/README.md', 'utf8'),
    of = (part: string): string => Math.round(rows.find((r) => r.part === part)!.bytesAStep!).toLocaleString('en');
  expect(rows.at(-1)).toMatchObject({ steps: 100_000, imagesAPrompt: 5 });
  expect(bars).toMatchObject([{ name: 'ids_bytes_a_step', holds: true }]);
  expect(page).toContain(`ids ${of('prompt and token ids')} bytes a step`);
  expect(page).toContain(
    `log-probs ${of('log-probs')}, entropies ${of('entropies')}, alternatives ${of('alternatives')}, the whole record ${of('whole record')}.`,
  );
});
