/**
 * Looking back on a failure before its desktop is reset (runtime/data/README.md#hindsight): a policy that was told
 * "Click the Apple button" and clicked "Lemon" has done another task, "Click the Lemon button". The verifiers of such
 * tasks are asked on the desktop as it was left; the first that finds success gives the recording its instruction.
 */
import type { JudgedOutcome, Step, Trajectory } from '../domain/index.js';
import { assisted, relabelledId, toRunError, unsampled } from '../domain/index.js';
import type { Desktop } from '../cluster/types.js';
import type { Task } from '../tasks/types.js';
import { DesktopGuard, stalledMsOf } from './desktopGuard.js';
import { timeLimit } from './timeLimit.js';
import type { EpisodeDeps, EpisodeResult, Hindsight } from './types.js';

/** Most verdicts on one failure. Where more tasks than these could be done, nearly all of their verdicts are failures. */
const MOST = 8;

/** The result with what looking back found. A fault in looking back changes nothing of the episode. */
export async function lookBack(
  deps: EpisodeDeps,
  desktop: Desktop,
  o: { readonly task: Task; readonly ended: EpisodeResult; readonly signal: AbortSignal },
): Promise<EpisodeResult> {
  const { hindsight, clock } = deps,
    { trajectory, broken } = o.ended;
  if (!hindsight || broken || !isOwnFailure(trajectory)) return o.ended;
  const began = clock.now(),
    { all, likely } = siblingsOf(hindsight, o.task, trajectory.outcome.report);
  if (all === 0) return o.ended;
  const found = await firstThatHolds(deps, desktop, likely.slice(0, MOST), hindsight.withinMs, o.signal),
    { sibling, outcome } = found.held ?? {};
  return {
    trajectory: {
      ...trajectory,
      hindsight: { siblings: all, asked: found.asked, held: found.held !== undefined, ms: clock.now() - began },
    },
    broken: found.broken,
    ...(sibling && outcome ? { relabelled: relabelled(trajectory, sibling, outcome) } : {}),
  };
}

/** A task source whose lookup fails counts as having no siblings. */
function siblingsOf(h: Hindsight, ...of: Parameters<Hindsight['siblings']>): ReturnType<Hindsight['siblings']> {
  try {
    return h.siblings(...of);
  } catch {
    return { all: 0, likely: [] };
  }
}

/** A failure of the policy alone, which it ended itself by saying that it had finished. */
function isOwnFailure(t: Trajectory): t is Trajectory & { readonly outcome: JudgedOutcome } {
  return (
    t.provenance.kind === 'rollout' &&
    t.outcome.kind === 'failure' &&
    !t.outcome.truncated &&
    !assisted(t) &&
    t.steps.at(-1)?.actions.at(-1)?.type === 'finished'
  );
}

interface Found {
  readonly held?: { readonly sibling: Task; readonly outcome: JudgedOutcome };
  readonly asked: number;
  readonly broken: boolean;
}

/** Asks one task after another, until one holds or the time is up. */
async function firstThatHolds(
  deps: EpisodeDeps,
  desktop: Desktop,
  siblings: readonly Task[],
  withinMs: number,
  signal: AbortSignal,
): Promise<Found> {
  const stalledMs = stalledMsOf(desktop),
    timeoutMs = Number.isFinite(withinMs) ? withinMs : undefined,
    limit = timeLimit({ clock: deps.clock, timeoutMs }, signal, stalledMs),
    guard = new DesktopGuard(deps, limit.signal, stalledMs);
  let asked = 0,
    lost = false,
    held: Found['held'];
  for (const sibling of siblings) {
    if (held || lost || limit.signal.aborted) break;
    asked++;
    try {
      const verdict = deps.tasks.verify(sibling, desktop, { type: 'finished' }, limit.signal),
        outcome = await guard.free(verdict, 'Looking back');
      if (outcome.kind === 'success') held = { sibling, outcome };
    } catch (e) {
      // A verifier that fails counts as no success.
      lost = toRunError(e).kind.startsWith('desktop.');
    }
  }
  limit.stop();
  const idle = await guard.quiet();
  return { ...(held ? { held } : {}), asked, broken: lost || !idle };
}

/**
 * The failure as a success of the task that it did. Log-probs, entropies, versions and thoughts belong to another
 * instruction and are left out, so that no policy gradient can be computed from it.
 */
export const relabelled = (
  { group: _group, branch: _branch, hindsight: _hindsight, ...t }: Trajectory,
  sibling: Pick<Task, 'id' | 'instruction'>,
  outcome: JudgedOutcome,
): Trajectory => ({
  ...t,
  id: relabelledId(t.id),
  task: sibling.id,
  instruction: sibling.instruction,
  provenance: { kind: 'hindsight', of: t.id, task: t.task, instruction: t.instruction },
  steps: t.steps.map(asDone),
  outcome: { ...outcome, truncated: false },
});

function asDone(s: Step): Step {
  const { thought: _thought, ...rest } = unsampled(s);
  return rest;
}
