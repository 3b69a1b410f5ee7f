/**
 * One episode on one leased desktop: set-up, then turns until the policy ends it or its cap is used up, then the
 * verdict. Faults of the environment or an engine become an error outcome, which has no reward; a policy that gives two
 * invalid answers in a row has failed (runtime/rollout/README.md#outcomes): failure, reward 0, not verified.
 */
import type { FrameRef, JudgedOutcome, Outcome, RunError, Step, Trajectory, VerifierCheck } from '../domain/index.js';
import { isEncoded, toRunError, cancelled } from '../domain/index.js';
import type { Desktop, Lease } from '../cluster/types.js';
import type { FrameStore } from '../data/types.js';
import type { PolicySession } from '../policy/types.js';
import { DesktopGuard, stalledMsOf } from './desktopGuard.js';
import { timeLimit } from './timeLimit.js';
import type { TurnsContext, TurnsEnd } from './turns.js';
import { look, Turns, whenStored } from './turns.js';
import type { EpisodeDeps, EpisodeRequest, EpisodeResult } from './types.js';

type Scene = Omit<TurnsContext, 'policy' | 'steps'>;

/** The episode so far, which is recorded also when a fault ends it. */
interface Played {
  readonly steps: Step[];
  instruction: string;
  session: PolicySession | undefined;
  /** Whether the policy decides: the steps that a branch replays first are not its own. */
  own: boolean;
  /** Whether the policy has acted itself. */
  acted: boolean;
  setupMs: number;
  verifyMs: number;
  last: FrameRef | undefined;
  error: RunError | undefined;
}

/**
 * Never rejects for a foreseeable reason: what went wrong becomes the trajectory's outcome. The caller keeps the lease.
 */
export async function runEpisode(deps: EpisodeDeps, lease: Lease, r: EpisodeRequest): Promise<EpisodeResult> {
  const { clock } = deps,
    stalledMs = stalledMsOf(lease.desktop),
    limit = timeLimit(deps, r.signal, stalledMs),
    guard = new DesktopGuard(deps, limit.signal, stalledMs),
    sofar: Played = {
      steps: [],
      instruction: r.task.instruction,
      session: undefined,
      own: r.order.branch === undefined,
      acted: false,
      setupMs: 0,
      verifyMs: 0,
      last: undefined,
      error: undefined,
    };
  const request: EpisodeRequest = {
    ...r,
    onPhase: (phase) => {
      sofar.acted ||= sofar.own && phase === 'perform';
      r.onPhase(phase);
    },
  };
  const { frames, end } = held(deps.frames),
    startedAt = clock.now();
  try {
    const outcome = await played({ deps: { ...deps, frames }, request, desktop: lease.desktop, limit, guard }, sofar),
      idle = await guard.quiet();
    return {
      trajectory: trajectoryOf(lease, r, sofar, { outcome, startedAt, endedAt: clock.now() }),
      broken: !idle || guard.timedOut || (sofar.error?.kind.startsWith('desktop.') ?? false),
    };
  } finally {
    end();
  }
}

/** The store with screens that stay until the end: a person may think about a step for longer than they do by themselves. */
function held(frames: FrameStore): { readonly frames: FrameStore; end(): void } {
  const hold = frames.hold?.();
  if (!hold) return { frames, end: () => undefined };
  const { put, end } = hold;
  return { frames: { put, get: (ref) => frames.get(ref), read: (ref) => frames.read(ref) }, end };
}

/** Plays the episode to its end and keeps its state in `sofar`. Returns its outcome, a fault included. */
async function played(scene: Scene, sofar: Played): Promise<Outcome> {
  const { deps, desktop, limit, guard } = scene;
  try {
    return await turnsAndVerdict(scene, sofar);
  } catch (e) {
    const error = limit.expired() ?? toRunError(e);
    sofar.error = error;
    const found = await blamed(desktop, error, guard.spentMs >= (deps.timeoutMs ?? Infinity) / 2);
    if (found === undefined) return { kind: 'error', error };
    if (sofar.acted) return brokenByPolicy(found);
    return {
      kind: 'error',
      error: { ...error, message: `${error.message} Before the policy acted, ${found}.` },
    };
  } finally {
    sofar.session?.close();
    limit.stop();
  }
}

async function turnsAndVerdict(scene: Scene, sofar: Played): Promise<Outcome> {
  const { deps, request: r, desktop, limit } = scene,
    { task, order } = r;
  if (limit.signal.aborted) throw cancelled('The rollout');
  sofar.setupMs = await setUp(scene);
  sofar.instruction = deps.tasks.instruction?.(task, desktop) ?? sofar.instruction;
  const session = (sofar.session = openSession(scene, sofar.instruction)),
    turns = new Turns({ ...scene, policy: session, steps: sofar.steps });
  if (order.branch) await turns.actOut(r.before, sofar.instruction);
  sofar.own = true;
  const end = await turns.run();
  // A terminal action changes nothing, so its screen is the last one. After the step cap there is one more screen to
  // take.
  if (end.how === 'cap') sofar.last = await lastScreen(scene);
  const t0 = deps.clock.now(),
    outcome =
      end.how === 'invalid' ? invalidAnswer(end.message) : end.how === 'restless' ? restless : await verify(scene, end);
  sofar.verifyMs = deps.clock.now() - t0;
  return outcome;
}

const trajectoryOf = (
  lease: Lease,
  { task, order, provenance }: EpisodeRequest,
  { instruction, steps, setupMs, verifyMs, last }: Played,
  end: Pick<Trajectory, 'outcome' | 'startedAt' | 'endedAt'>,
): Trajectory => ({
  id: order.rollout,
  task: task.id,
  family: order.family,
  instruction,
  group: provenance.kind === 'rollout' ? order.group : undefined,
  provenance,
  ...(order.branch ? { branch: order.branch } : {}),
  steps,
  outcome: end.outcome,
  cap: order.cap,
  startedAt: end.startedAt,
  endedAt: end.endedAt,
  resetMs: lease.resetMs + setupMs,
  verifyMs,
  last,
});

/** Prepares the task and waits until the desktop is at rest. Returns the ms that this took. */
async function setUp({ deps, request: r, desktop, limit, guard }: Scene): Promise<number> {
  const t0 = deps.clock.now();
  r.onPhase('setup');
  await guard.watched(deps.tasks.setup(r.task, desktop, limit.signal), desktop, 'Setting up the task');
  await guard.rest(desktop, deps);
  return deps.clock.now() - t0;
}

const openSession = ({ deps, request: r, desktop }: Scene, instruction: string): PolicySession =>
  deps.policy.open({
    rollout: r.order.rollout,
    instruction,
    screen: desktop.screen,
    sampling: r.sampling,
  });

async function lastScreen(scene: Scene): Promise<FrameRef> {
  const { deps, desktop, guard } = scene,
    frame = await guard.call(look(deps, desktop), 'observe'),
    ref = await whenStored(scene, deps.frames.put(frame));
  if (!isEncoded(frame)) desktop.recycle?.(frame);
  return ref;
}

async function verify(
  { deps, request: r, desktop, limit, guard }: Scene,
  end: Extract<TurnsEnd, { how: 'ended' | 'cap' }>,
): Promise<Outcome> {
  r.onPhase('verify');
  // The time limit does not run meanwhile: a busy machine must not shorten the rollout.
  await limit.suspendedDuring(guard.lastRest(desktop, limit.signal));
  // The verifier's commands have a time limit of their own; one that hangs is the policy's failure and no error.
  const judged = await limit.suspendedDuring(
    guard.free(deps.tasks.verify(r.task, desktop, end.last, limit.signal), 'Verifying the task'),
  );
  const outcome = { ...judged, truncated: end.how === 'cap' };
  return end.full && judged.kind === 'failure' ? withCheck(outcome, contextFull) : outcome;
}

/**
 * How the desktop's own programs broke or slowed it, in words. They are blamed for a rollout that ran out of time only
 * when most of that time was spent waiting for the desktop (`slow`) and its programs keep it busy.
 */
async function blamed(desktop: Desktop, error: RunError, slow: boolean): Promise<string | undefined> {
  if (error.kind === 'desktop.lost') return desktop.blame?.();
  return error.kind === 'timeout' && slow ? desktop.blame?.('late') : undefined;
}

/** A desktop that the policy itself broke is its failure, not an error that is tried again. */
const brokenByPolicy = (found: string): Outcome => ({
  kind: 'failure',
  reward: 0,
  truncated: false,
  report: { checks: [{ what: 'the desktop', expected: 'it works until the end', found, score: 0 }] },
});

const contextFull: VerifierCheck = {
  what: "the model's context",
  expected: 'it has room for the next step',
  found: 'the prompt has outgrown it',
  score: 0,
};
const withCheck = (o: JudgedOutcome, check: VerifierCheck): Outcome => ({
  ...o,
  report: { ...o.report, checks: [...(o.report?.checks ?? []), check] },
});

const restless: Outcome = {
  kind: 'failure',
  reward: 0,
  truncated: false,
  report: {
    checks: [
      {
        what: 'the desktop comes to rest',
        expected: 'it does after every action: what a deterministic run sees must not depend on the clock',
        found: 'its programs stay at work',
        score: 0,
      },
    ],
  },
};

const invalidAnswer = (found: string): Outcome => ({
  kind: 'failure',
  reward: 0,
  truncated: false,
  report: { checks: [{ what: 'the policy answers with an action', expected: 'an action', found, score: 0 }] },
});
