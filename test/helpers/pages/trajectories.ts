import type { FrameLink, GroupView, StepView, TokenView, TrajectoryView } from '../../../runtime/protocol/types.js';
import type { FrameFolder, Paint } from './screens.js';

type Action = StepView['actions'][number];
const blue = [53, 132, 228] as const,
  white = [255, 255, 255] as const;
const row = (i: number, colour: Paint['colour'] = blue, alpha = 0.45): Paint => ({
  x: 155,
  y: 53 + 29 * i,
  width: 244,
  height: 28,
  colour,
  alpha,
});
const cell = (
  x: number,
  y: number,
): { readonly x: number; readonly y: number; readonly width: number; readonly height: number } => ({
  x: Math.floor(x / 16) * 16,
  y: Math.floor(y / 16) * 16,
  width: 16,
  height: 16,
});

/**
 * Choices as the embedded policy samples them: type, then place, text or key; `sure` in (0, 1] is the probability of
 * what was taken.
 */
function tokens(a: Action, sure: number): TokenView[] {
  const entropy = (p: number): number => (p >= 1 ? 0 : -(p * Math.log(p) + (1 - p) * Math.log((1 - p) / 4)));
  const others = ['click', 'left_double', 'scroll_down', 'type', 'wait'].filter((t) => t !== a.type).slice(0, 4),
    sureType = Math.min(1, sure + 0.2);
  const out: TokenView[] = [
    {
      label: a.type,
      logprob: Math.log(sureType),
      entropy: entropy(sureType),
      alternatives: [
        { label: a.type, probability: sureType },
        ...others.map((label, i) => ({ label, probability: (1 - sureType) * [0.5, 0.25, 0.15, 0.1][i]! })),
      ],
    },
  ];
  const at = 'at' in a ? a.at : 'from' in a ? a.from : undefined;
  if (at) {
    const near = [
      [0, 0, sure],
      [16, 0, (1 - sure) * 0.4],
      [0, 32, (1 - sure) * 0.25],
      [-48, 16, (1 - sure) * 0.15],
      [96, 112, (1 - sure) * 0.12],
      [160, -16, (1 - sure) * 0.08],
    ] as const;
    out.push({
      label: `${at.x},${at.y}`,
      logprob: Math.log(sure),
      entropy: entropy(sure),
      alternatives: near.map(([dx, dy, probability], i) => ({
        label: i ? `${at.x + dx},${at.y + dy}` : `${at.x},${at.y}`,
        probability,
        at: cell(at.x + dx, at.y + dy),
      })),
    });
  }
  if (a.type === 'type')
    out.push({
      label: a.text,
      logprob: Math.log(sure),
      entropy: entropy(sure),
      alternatives: [
        { label: a.text, probability: sure },
        { label: 'Paris', probability: (1 - sure) * 0.6 },
        { label: 'yes', probability: (1 - sure) * 0.4 },
      ],
    });
  if (a.type === 'hotkey')
    out.push({
      label: a.keys.join('+'),
      logprob: Math.log(sure),
      entropy: entropy(sure),
      alternatives: [
        { label: a.keys.join('+'), probability: sure },
        { label: 'enter', probability: 1 - sure },
      ],
    });
  return out;
}

export interface Plan {
  readonly action: Action;
  readonly frame: FrameLink;
  readonly sure: number;
  readonly thought?: string;
  readonly version?: number;
  readonly settled?: boolean;
}
export const t0 = Date.UTC(2026, 10, 20, 12);

export function step(
  index: number,
  p: Plan,
  after: FrameLink | undefined,
  o: { readonly advantage?: number; readonly threshold?: number; readonly formed?: boolean } = {},
): StepView {
  const ts = tokens(p.action, p.sure),
    entropy = ts.reduce((s, t) => s + t.entropy, 0) / ts.length;
  return {
    index,
    at: t0 + index * 900,
    frame: p.frame,
    ...(after ? { after } : {}),
    ...(p.thought === undefined ? {} : { thought: p.thought }),
    actions: [p.action],
    origin: 'policy',
    settled: p.settled ?? true,
    tokens: ts,
    entropy,
    ...(o.formed && o.threshold !== undefined
      ? { kept: entropy >= o.threshold, weight: 0.91 + 0.02 * (index % 5), advantage: o.advantage ?? 0 }
      : {}),
    version: p.version ?? 12,
    ...(index === 0 ? { progress: { held: 1 / 3, ms: 12 } } : {}),
    timings: { observe: 11, queue: 3 + index, decide: 42, perform: 28, settle: 210 + 40 * (index % 3) },
    replica: 'replica-0',
    desktop: 'desk-2',
  };
}

/** A rollout with every kind of action, on real screens; two policy versions. */
export async function richPlans(f: FrameFolder): Promise<Plan[]> {
  const list = await f.add('list'),
    lemonOff = await f.add('list', [row(0, white, 0.8), row(3)]),
    plum = await f.add('list', [row(0, white, 0.8), row(4)]),
    form = await f.add('form'),
    typed = await f.add('form', [{ x: 292, y: 138, width: 60, height: 12, colour: [30, 30, 30], alpha: 0.85 }]);
  const city = await f.add('form', [{ x: 284, y: 170, width: 230, height: 30, colour: blue, alpha: 0.15 }]),
    editor = await f.add('editor'),
    edited = await f.add('editor', [{ x: 158, y: 140, width: 90, height: 12, colour: [30, 30, 30], alpha: 0.85 }]);
  const marked = await f.add('editor', [{ x: 156, y: 138, width: 96, height: 16, colour: blue, alpha: 0.5 }]),
    calc = await f.add('calculator'),
    nine = await f.add('calculator', [{ x: 316, y: 82, width: 18, height: 26, colour: [0, 0, 0], alpha: 0.8 }]),
    done = await f.add('calculator', [{ x: 300, y: 82, width: 34, height: 26, colour: [0, 0, 0], alpha: 0.8 }]);
  const plan = (
    action: Action,
    frame: FrameLink,
    sure: number,
    version: number,
    thought?: string,
    settled = true,
  ): Plan => ({ action, frame, sure, version, settled, ...(thought ? { thought } : {}) });
  return [
    plan(
      { type: 'click', at: { x: 194, y: 154 } },
      list,
      0.42,
      12,
      'The list has six fruits. “Melon” is the fourth; I choose it first, then confirm with OK.',
    ),
    plan({ type: 'left_double', at: { x: 190, y: 183 } }, lemonOff, 0.88, 12, 'Melon is chosen now.'),
    plan(
      { type: 'scroll', at: { x: 280, y: 160 }, direction: 'down', amount: 3 },
      plum,
      0.31,
      12,
      'I do not see the entry I need, so I scroll the list.',
    ),
    plan({ type: 'click', at: { x: 398, y: 147 } }, form, 0.93, 12),
    plan(
      { type: 'type', text: 'K7-204\tLisbon\n' },
      typed,
      0.66,
      12,
      'The code field has the focus: code first, Tab, then the city, and Enter to confirm.',
    ),
    plan(
      { type: 'right_single', at: { x: 330, y: 186 } },
      city,
      0.36,
      13,
      'The city is wrong. A context menu may offer to clear it.',
    ),
    plan({ type: 'hotkey', keys: ['ctrl', 'a'] }, editor, 0.97, 13),
    plan(
      { type: 'drag', from: { x: 158, y: 147 }, to: { x: 250, y: 149 } },
      edited,
      0.58,
      13,
      'I mark the word by dragging over it.',
      false,
    ),
    plan({ type: 'hotkey', keys: ['ctrl', 'shift', 's'] }, marked, 0.99, 13),
    plan({ type: 'click', at: { x: 190, y: 215 } }, calc, 0.71, 13),
    plan({ type: 'wait', ms: 500 }, nine, 0.9, 13),
    plan({ type: 'finished', answer: '96' }, done, 0.82, 13, 'The display shows the result; the task is done.'),
  ];
}

export function view(
  plans: readonly Plan[],
  framesDir: string,
  o: Partial<TrajectoryView> & {
    readonly rollout?: string;
    readonly outcome?: TrajectoryView['row']['outcome'];
    readonly formed?: boolean;
    readonly threshold?: number;
  } = {},
): TrajectoryView {
  const { rollout = 'r-000102', outcome = 'success', formed = true, threshold = 0.42, ...rest } = o,
    advantage = outcome === 'success' ? 0.866 : -0.866;
  const steps = plans.map((p, i) => step(i, p, plans[i + 1]?.frame ?? p.frame, { advantage, threshold, formed }));
  return {
    row: {
      rollout,
      task: 'desk/choose-fruit#41',
      family: 'desk/choose-fruit',
      instruction: 'Choose Melon in the list, fill in the form with code K7-204 and city Lisbon, and press OK',
      outcome,
      ...(outcome === 'success' ? { reward: 1 } : outcome === 'failure' ? { reward: 0 } : {}),
      provenance: 'rollout',
      ...(formed ? { state: 'trained (v13)' } : { state: 'running' }),
      group: 'g-7',
      steps: steps.length,
      cap: 20,
      versions: [12, 13],
      startedAt: t0 - 1800,
      ...(outcome === 'running' ? {} : { endedAt: t0 + 14_600 }),
    },
    steps,
    threshold,
    ...(formed ? { advantage } : {}),
    framesDir,
    live: outcome === 'running',
    resetMs: 1240,
    ...(outcome === 'running' ? {} : { verifyMs: 38 }),
    seq: 4711,
    ...(outcome === 'running'
      ? {}
      : {
          report: {
            checks: [
              {
                what: 'chosen row of the list',
                expected: 'Melon',
                found: outcome === 'success' ? 'Melon' : 'Plum',
                score: outcome === 'success' ? 1 : 0,
              },
              { what: 'field Code', expected: 'K7-204', found: 'K7-204', score: 1 },
              {
                what: 'exact_match: test -s',
                detail: 'test -s /home/user/city && grep -qx Lisbon /home/user/city',
                expected: 'Lisbon',
                found: 'Lisbon',
                score: 1,
              },
            ],
          },
        }),
    group: group(rollout),
    ...rest,
  };
}
export function group(self = 'r-000102'): GroupView {
  const members: GroupView['members'] = [
    { rollout: 'r-000101', outcome: 'failure', reward: 0, advantage: -0.866, steps: 14, injected: false },
    { rollout: 'r-000102', outcome: 'success', reward: 1, advantage: 0.866, steps: 12, injected: false },
    { rollout: 'r-000103', outcome: 'error', steps: 3, injected: false, retired: 'error: desktop.lost' },
    { rollout: 'r-000104', outcome: 'success', reward: 1, advantage: 0.866, steps: 9, injected: true },
    { rollout: 'r-000105', outcome: 'failure', reward: 0, advantage: -0.866, steps: 20, injected: false },
  ];
  return {
    id: 'g-7',
    family: 'desk/choose-fruit',
    task: 'desk/choose-fruit#41',
    state: 'trained',
    threshold: 0.42,
    members: members.some((m) => m.rollout === self)
      ? members
      : [...members, { rollout: self, outcome: 'running', steps: 0, injected: false }],
  };
}
/** `count` steps over few pictures. */
export const longPlans = (plans: readonly Plan[], count: number): Plan[] =>
  Array.from({ length: count }, (_, i) => ({
    ...plans[i % plans.length]!,
    sure: 0.3 + 0.69 * Math.abs(Math.sin(i * 12.9898)),
    version: 12 + Math.floor(i / Math.max(1, count / 7)),
  }));
