import type { DataManager } from '../data/dataManager.js';
import type { Learner } from './backends/index.js';
import { soundCheckpoint, startingPoint, type RunCheckpoint, type SoundCheckpoint } from './checkpoints.js';
import type { RunParts } from './parts.js';
import { progressOf, STAND_IN, type Progress } from './resume.js';
import type { RunLog } from './runLog.js';
import type { RunState } from './runState.js';

/** Which weights a run, new or resumed, starts from, and as which version. */
export interface StartWeights {
  /** The checkpoint that the run goes on from; undefined: untaught weights. */
  readonly base: RunCheckpoint | undefined;
  readonly version: number;
  readonly own: SoundCheckpoint;
}

/** How far an earlier part of the run had got, and its newest checkpoint that is whole. */
export async function earlierPart(
  data: DataManager,
): Promise<{ readonly progress: Progress; readonly own: SoundCheckpoint }> {
  const own = await soundCheckpoint(data.store),
    { damaged, checkpoint } = own,
    standIn = damaged && { of: damaged.version, base: checkpoint?.version ?? 0 };
  return { progress: await progressOf(data.store, data.elapsedMs, standIn), own };
}

/** The run's own newest checkpoint that is whole, else what `from` names. */
export async function startWeights(own: SoundCheckpoint, from: string | undefined): Promise<StartWeights> {
  const base = own.checkpoint ?? (from === undefined ? undefined : await startingPoint(from)),
    // A version number is never used twice: steps and claims refer to the damaged one by its number.
    version = own.damaged ? own.damaged.version + 1 : (base?.version ?? 0);
  return { base, version, own };
}

/** The state of a run that starts from these weights. */
export function startState(state: RunState, { version, own }: StartWeights, progress: Progress): void {
  const { warmStartVersion } = progress,
    whole = own.checkpoint;
  state.version = version;
  // A journalled warm start without a checkpoint is lost and repeated.
  state.warmStartVersion =
    whole && warmStartVersion !== undefined && whole.version >= warmStartVersion ? warmStartVersion : undefined;
}

/**
 * Saves the starting weights as the run's own checkpoint, so that the folder depends on no other folder and on nothing
 * that is damaged.
 */
export async function saveStart(
  { base, own: { checkpoint: own, damaged } }: StartWeights,
  { data, learner, log }: { readonly data: DataManager; readonly learner: Learner | undefined; readonly log: RunLog },
): Promise<void> {
  if (!learner || !(damaged || (base && !own))) return;
  const { version, dir } = await data.room.write(() => learner.checkpoint()),
    learned = damaged && { source: STAND_IN, values: { of: damaged.version, base: own?.version ?? 0 } };
  await data.note({ type: 'checkpoint', version, dir, ...(learned ? { learned } : {}) });
  if (!damaged) {
    log.note(`Starts from the policy in ${base!.dir}.`);
    return;
  }
  const goesOn = own
    ? `The run continues with the weights of version ${own.version}, as version ${version}; what was learned between them is lost.`
    : `None before it is whole: the run learns again from ${base ? 'the policy it started from' : 'the beginning'}, as version ${version}.`;
  log.note(`${damaged.why} ${goesOn}`);
}

/**
 * Continues a run whose trainer was lost and whose last checkpoint is damaged, from the weights it would be resumed
 * from. Resolves when replicas act with them; rejects with `error` where the cause is another one, or no weights can be
 * found.
 */
export async function withoutDamage(r: RunParts, error: unknown): Promise<RunParts> {
  const { data, log, state, config } = r,
    { learner } = r.engine;
  if (!learner?.startOver || learner.lostCheckpoint?.(error) === undefined) throw error;
  const { progress, own } = await earlierPart(data);
  if (!own.damaged) throw error;
  const start = await startWeights(own, config.warmStart.from),
    { base, version } = start;
  await learner.startOver(version, base && { ...base, version });
  await saveStart(start, { data, learner, log });
  startState(state, start, progress);
  await (await learner.snapshot()).publish();
  return { ...r, progress };
}
