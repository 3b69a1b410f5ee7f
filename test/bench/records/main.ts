// npm run bench:records [-- --quick] [-- --steps N] [-- --json FILE]: what a step of a vision-language model costs in the
// journal, by its parts, as the production encoder writes it; episodes are made and forgotten one by one.
import { random, type FrameRef, type Step } from '../../../runtime/domain/index.js';
import type { StepExtra } from '../../../runtime/data/events.js';
import { encodeRecord } from '../../../runtime/data/store/record.js';
import { remoteEpisode } from '../../helpers/policy/remoteEpisode.js';
import { bar, benchArgs, finish } from '../lib/report.js';

const { quick, json, rest } = benchArgs(),
  at = rest.indexOf('--steps'),
  STEPS = at < 0 ? (quick ? 1000 : 100_000) : Number(rest[at + 1]),
  EPISODE = 50,
  IMAGES = 5,
  WORDS =
    'the button opens a menu with entries for this document so I click on it and wait until window list shows name field save as dialog then type new folder press enter check result'.split(
      ' ',
    );

const frame = (n: number): FrameRef => ({ hash: n.toString(16).padStart(64, '0'), width: 1280, height: 720 });
/** An episode of a model that says 60 to 100 tokens a step, with the newest five screenshots in its prompts. */
function episode(seed: number): { readonly steps: readonly Step[]; readonly extras: readonly StepExtra[] } {
  const r = random(`bench/records/${seed}`),
    turns = Array.from({ length: EPISODE }, (_, i) => {
      const words = Array.from({ length: 45 + r.int(38) }, () => WORDS[r.int(WORDS.length)]!);
      return {
        frame: frame(seed * EPISODE + i),
        actions: [{ type: 'click', at: { x: r.int(1280), y: r.int(720) } } as const],
        text: `Thought: ${words.join(' ')}.\nAction: click(start_box='(${r.int(1280)},${r.int(720)})')`,
      };
    });
  return remoteEpisode(turns, { images: IMAGES, seed });
}
const bytes = (step: Partial<Step>, extra: StepExtra): number =>
  encodeRecord(1, { type: 'rollout.step', rollout: 'r-000102', step: step as Step, extra }).length;

/** Bytes that a record would lack without a part. */
function costs(step: Step, extra: StepExtra): Record<string, number> {
  const whole = bytes(step, extra),
    { prompt: _p, tokens, ...bare } = step,
    without = (part: 'logprobs' | 'entropies'): number =>
      whole - bytes({ ...step, tokens: { ...tokens!, [part]: undefined } as never }, extra),
    { packed: _a, ...noAlternatives } = extra;
  return {
    'prompt and token ids': whole - bytes({ ...bare, tokens: { ...tokens!, ids: undefined } as never }, extra),
    'log-probs': without('logprobs'),
    entropies: without('entropies'),
    alternatives: whole - bytes(step, noAlternatives),
    'whole record': whole,
  };
}

const sums: Record<string, number> = {},
  most: Record<string, number> = {};
let steps = 0,
  tokens = 0,
  peak = 0;
for (let seed = 0; steps < STEPS; seed++) {
  const e = episode(seed);
  for (const [i, step] of e.steps.entries()) {
    for (const [what, n] of Object.entries(costs(step, e.extras[i]!))) {
      sums[what] = (sums[what] ?? 0) + n;
      most[what] = Math.max(most[what] ?? 0, n);
    }
    tokens += step.tokens!.ids!.length;
    steps++;
  }
  peak = Math.max(peak, process.memoryUsage.rss());
}
const mean = (x: number): number => Math.round((100 * x) / steps) / 100;
finish(
  'records',
  [
    ...Object.keys(sums).map((what) => ({ part: what, bytesAStep: mean(sums[what]!), most: most[what] })),
    { section: 'of', steps, imagesAPrompt: IMAGES, tokensAnAnswer: mean(tokens), peakRssMb: Math.round(peak / 1e6) },
  ],
  [bar('ids_bytes_a_step', mean(sums['prompt and token ids']!), `bytes, mean of ${steps} steps`, '<= 1000')],
  json,
);
