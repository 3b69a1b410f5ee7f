import { createHash } from 'node:crypto';
import { pngOf } from '../../../runtime/data/store/png.js';
import type { FrameStore } from '../../../runtime/data/types.js';
import {
  StudioError,
  id,
  random,
  type EncodedFrame,
  type FrameRef,
  type Outcome,
  type Provenance,
  type RejectedAnswer,
  type RolloutId,
  type Screenshot,
  type Step,
  type Trajectory,
} from '../../../runtime/domain/index.js';
import type { Decision, InvalidAnswer, Policy, PolicySession } from '../../../runtime/policy/types.js';

/** Short episodes on drawn screens: a grey one with a box, which is to be clicked. */

/** Sides that the model's processor leaves as they are: two libraries resize alike but for a level of some pixels. */
export const SCREEN = { width: 224, height: 128 };
const BOX = 40;
export const INSTRUCTION = 'Click the box.';

export interface BoxScreen {
  readonly frame: EncodedFrame;
  /** Middle of the box. */
  readonly at: { readonly x: number; readonly y: number };
}
export async function screens(n: number): Promise<BoxScreen[]> {
  const r = random('peers/vllm/screens');
  return Promise.all(Array.from({ length: n }, () => drawn(r.int(SCREEN.width - BOX), r.int(SCREEN.height - BOX), r)));
}
async function drawn(left: number, top: number, r: { int(n: number): number }): Promise<BoxScreen> {
  const data = Buffer.alloc(SCREEN.width * SCREEN.height * 4, 60 + r.int(60)),
    colour = Buffer.from([r.int(256), r.int(256), 160 + r.int(96), 0]);
  for (let y = top; y < top + BOX; y++)
    for (let x = left; x < left + BOX; x++) colour.copy(data, (y * SCREEN.width + x) * 4);
  const frame = { ...SCREEN, png: await pngOf({ ...SCREEN, data, capturedAt: 0 }), capturedAt: 0 };
  return { frame, at: { x: left + BOX / 2, y: top + BOX / 2 } };
}

/** Screens by the hash of their file, as those are kept that their desktop encoded. */
export class Frames implements FrameStore {
  readonly #files = new Map<string, Buffer>();
  put(screen: Screenshot): Promise<FrameRef> {
    const { png, width, height } = screen as EncodedFrame,
      hash = createHash('sha256').update(png).digest('hex');
    this.#files.set(hash, png);
    return Promise.resolve({ hash, width, height });
  }
  get(): Promise<never> {
    return Promise.reject(new Error('nobody looks at pixels here'));
  }
  read({ hash }: FrameRef): Promise<Buffer> {
    return Promise.resolve(this.#files.get(hash)!);
  }
}

const bare = { settled: true, timings: { observe: 0, decide: 0, queue: 0, perform: 0, settle: 0 } };
const trajectory = (rollout: string, provenance: Provenance, steps: readonly Step[], success: boolean): Trajectory => {
  const outcome: Outcome = { kind: success ? 'success' : 'failure', reward: success ? 1 : 0, truncated: false };
  return {
    ...{ id: id<RolloutId>(rollout), task: id('box'), family: id('box'), instruction: INSTRUCTION, provenance, steps },
    ...{ outcome, cap: steps.length, startedAt: 0, endedAt: 1, resetMs: 0, verifyMs: 0 },
  };
};

/** What a script would do: a click on the box of each screen. */
export async function demonstration(n: number, of: readonly BoxScreen[], frames: FrameStore): Promise<Trajectory> {
  const steps = await Promise.all(
    of.map(async ({ frame, at }, index): Promise<Step> => ({
      ...bare,
      index,
      frame: await frames.put(frame),
      actions: [{ type: 'click', at: onWords(at) }],
      origin: 'oracle',
    })),
  );
  return trajectory(`shown-${n}`, { kind: 'oracle' }, steps, true);
}
/** The nearest place whose coordinates, in thousandths of the screen, are words of the model. */
const onWords = ({ x, y }: BoxScreen['at']): { x: number; y: number } => ({
  x: near(x, SCREEN.width),
  y: near(y, SCREEN.height),
});
const near = (at: number, side: number): number =>
  ((25 + 50 * Math.min(19, Math.floor((20 * at) / side))) * side) / 1000;

export interface Watch {
  readonly signal: AbortSignal;
  /** Before each call, and with the version that answered; once for every answer, also those that are no action. */
  readonly onCall: () => (version: number | undefined) => void;
}

/** One episode by the policy. An answer that is no action is asked for once more, as rollouts do. Rejects as `decide` does. */
export async function episode(
  policy: Policy,
  rollout: string,
  of: readonly BoxScreen[],
  frames: FrameStore,
  watch: Watch,
): Promise<Trajectory> {
  const sampling = { greedy: false, temperature: 1, seed: random(rollout).int(2 ** 31) },
    session = policy.open({ rollout: id<RolloutId>(rollout), instruction: INSTRUCTION, screen: SCREEN, sampling }),
    steps: Step[] = [];
  try {
    for (const [index, screen] of of.entries()) {
      const frame = await frames.put(screen.frame),
        { decision, rejected } = await decided(session, screen.frame, watch);
      const { actions, tokens, prompt, version } = decision;
      steps.push({
        ...bare,
        ...{ index, frame, actions, origin: 'policy', tokens, prompt, version },
        rejected: rejected.length > 0 ? rejected : undefined,
      });
      if (actions.length === 0) break;
    }
  } finally {
    session.close();
  }
  const clicked = steps.some(({ actions: [a] }, i) => a?.type === 'click' && isOn(a.at, of[i]!.at));
  return trajectory(rollout, { kind: 'rollout' }, steps, clicked);
}
const isOn = (a: BoxScreen['at'], box: BoxScreen['at']): boolean =>
  Math.abs(a.x - box.x) <= BOX / 2 && Math.abs(a.y - box.y) <= BOX / 2;

/** A step's own answer is the last one, also where that is no action; the one before it is beside it. */
async function decided(
  session: PolicySession,
  frame: EncodedFrame,
  { signal, onCall }: Watch,
): Promise<{
  readonly decision: Pick<Decision, 'actions' | 'tokens' | 'prompt' | 'version'>;
  readonly rejected: readonly RejectedAnswer[];
}> {
  const rejected: RejectedAnswer[] = [];
  for (;;) {
    const answered = onCall();
    try {
      const decision = await session.decide(frame, signal);
      answered(decision.version);
      return { decision, rejected };
    } catch (e) {
      if (!(e instanceof StudioError) || e.kind !== 'policy.invalid') throw e;
      const { text, ...sampled } = e.error.details as unknown as InvalidAnswer;
      answered(sampled.version);
      if (rejected.length > 0) return { decision: { ...sampled, version: sampled.version!, actions: [] }, rejected };
      const { tokens, prompt, version } = sampled;
      rejected.push({ text, reason: e.message, tokens, prompt, version });
    }
  }
}
