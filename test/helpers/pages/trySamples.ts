/** A policy that is tried, as a runtime tells of it. */
import type { ControlState, StepView, TaskRow, TryPolicy } from '../../../runtime/protocol/types.js';
import type { InputOf } from '../../../webview/protocol.js';

export const tryInput: InputOf<'try'> = {
  kind: 'try',
  roots: ['/work/runs'],
  files: ['/work/ui-tars.dart-run.json'],
  base: '/work/runs',
  run: '/work/runs/quick-s1',
};
export const tryPolicies: readonly TryPolicy[] = [
  { run: '/work/runs/quick-s1', name: 'quick-s1', kind: 'embedded', versions: [12, 9, 4] },
  { file: '/work/ui-tars.dart-run.json', name: 'ui-tars', kind: 'openai', model: 'UI-TARS-1.5-7B' },
];
const evaluation = (version: number, successes: number): object => ({
  label: 'dev',
  at: 1,
  version,
  episodes: 20,
  successes,
  errors: 0,
  low: 0,
  high: 1,
  perFamily: {},
});
export const tryRun = { evals: [evaluation(9, 16), evaluation(12, 13), evaluation(3, 20)] };
const family = (name: string, o: Partial<TaskRow> = {}): TaskRow => ({
  family: name,
  rollouts: 10,
  successes: 4,
  spark: [],
  ...o,
});
export const tryTasks: readonly TaskRow[] = [
  family('desk/press-button', { title: 'zenity: Press the OK button.' }),
  family('desk/list-confirm', { heldOut: true }),
];
export const tryImages = [
  { name: 'desk', title: 'Desk', description: '' },
  { name: 'web', title: 'Web', description: '' },
];

/** Steps of the policy: each click with what else was considered, at places of the screen. */
export const tryStep = (index: number, hash: string, o: Partial<StepView> = {}): StepView => {
  const at = { x: 190 + 20 * index, y: 154 };
  return {
    index,
    at: 1000 * index,
    frame: { hash, width: 640, height: 400 },
    actions: [{ type: 'click', at }],
    origin: 'policy',
    settled: true,
    version: 9,
    entropy: 0.15 + 0.2 * index,
    tokens: [
      {
        label: 'click',
        logprob: -0.05,
        entropy: 0.2 + 0.1 * index,
        alternatives: [
          { label: 'click', probability: 0.95 },
          { label: 'type', probability: 0.03 },
        ],
      },
      {
        label: `${at.x},${at.y}`,
        logprob: -0.35,
        entropy: 0.8 + 0.4 * index,
        alternatives: [
          { label: `${at.x},${at.y}`, probability: 0.7, at: { x: at.x - 8, y: at.y - 8, width: 16, height: 16 } },
          { label: '390,147', probability: 0.2, at: { x: 382, y: 139, width: 16, height: 16 } },
        ],
      },
    ],
    timings: { observe: 2, queue: 1, decide: 20, perform: 5, settle: 60 },
    ...o,
  };
};

export const tried = (
  o: Partial<ControlState> = {},
  trial: Partial<NonNullable<ControlState['trial']>> = {},
): ControlState => ({
  session: 'a1b2c3d4e5f6',
  purpose: 'try',
  mode: 'policy',
  desktop: 'local-7',
  screen: { width: 640, height: 400 },
  run: '/work/runs/tries',
  rollout: 'try/x/1',
  family: 'try/instruction',
  task: 'try/instruction#0a1b2c3d',
  seed: 0,
  instruction: 'Press the OK button',
  steps: [],
  left: 6,
  ...o,
  trial: {
    policy: 'quick-s1 v9',
    version: 9,
    image: 'desk',
    frames: '/cache/try/frames',
    verified: false,
    heldOut: false,
    cap: 6,
    stopped: false,
    notes: ['No instruction that it learned from had “gizmo”. The policy goes by the words it knows.'],
    ...trial,
  },
});
/** As the state lists them. */
export const listed = (steps: readonly StepView[]): ControlState['steps'] =>
  steps.map(({ index, origin, actions, frame }) => ({
    index,
    origin: origin === 'policy' ? 'policy' : 'human',
    actions,
    frame,
  }));
