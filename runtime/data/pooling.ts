import { endedInSuccess, type PolicyVersion, type RolloutId, type Trajectory } from '../domain/index.js';
import type { JournalEvent } from './events.js';
import { poolEntryOf, type ExperiencePool } from './experiencePool.js';
import type { PoolAnswer, PoolWish } from './types.js';

export interface Pooling {
  readonly events: readonly JournalEvent[];
  readonly answer: PoolAnswer;
}
const no = (why: string): Pooling => ({ events: [], answer: { pooled: false, why } });
const yes = (...events: readonly JournalEvent[]): Pooling => ({ events, answer: { pooled: true } });

/**
 * Whether a finished trajectory joins the pool, and the events for that (not yet applied). Without `by` the pool's
 * rules decide; when a person adds it, it joins unless it cannot be learned from. Anything but a verified success needs
 * `override`.
 */
export function pooling(
  pool: ExperiencePool,
  t: Trajectory,
  wish: PoolWish,
  version: PolicyVersion,
  by?: 'person',
): Pooling {
  if (wish === 'never') return no('it was not wanted');
  // Held-out tasks are for evaluation; learning from them would invalidate it.
  if (t.provenance.kind === 'probe')
    return no('it is an episode of an evaluation: its task is held out and never trained on');
  if (t.outcome.kind === 'error') return no('it ended in an error, which says nothing about the task');
  if (t.outcome.kind !== 'success' && wish === 'auto') return no('its verifier did not call it a success');
  // Steps made after the goal was reached would be imitated, too; a person may decide otherwise.
  if (!by && t.provenance.kind !== 'human' && !endedInSuccess(t.outcome, t.steps.length))
    return no('it hit the step limit: it went on after its goal');
  if (t.instruction === '') return no('its instruction is not known');
  if (t.steps.length === 0) return no('it has no steps');
  if (!pool.enabled) return no('the pool is off in the run file');
  const there = pool.get(t.id);
  if (there) return there.enabled || !by ? yes() : yes({ type: 'pool.switched', entries: [t.id], enabled: true });
  const entry = poolEntryOf(t, t.outcome.kind === 'success' || wish === 'auto' ? undefined : wish.override),
    twin = pool.twin(entry, version);
  // A copy would only make the entry twice as likely to be chosen, so it is refused even for a person; it replaces a
  // copy that is spent.
  if (twin && !twin.spent)
    return { events: [], answer: { pooled: false, why: 'the pool has the same steps of this task', twin: twin.id } };
  const refusal = by ? undefined : pool.refusal(entry, twin?.id);
  if (refusal !== undefined) return no(refusal);
  const goes = (gone: RolloutId, reason: string): JournalEvent => ({ type: 'pool.removed', entry: gone, reason });
  return yes(
    ...(twin ? [goes(twin.id, 'a newer one of the same steps takes its place')] : []),
    ...pool.surplus(entry, version, twin?.id).map((gone) => goes(gone, 'the family has its share')),
    { type: 'pool.added', entry, by },
  );
}

/** Applies an event to the pool. */
export function applyToPool(pool: ExperiencePool, e: JournalEvent): void {
  if (e.type === 'pool.added') pool.add(e.entry);
  else if (e.type === 'pool.removed') pool.remove(e.entry, e.by);
  else if (e.type === 'pool.switched') for (const id of e.entries) pool.switch(id, e.enabled);
  else if (e.type === 'group.formed') for (const m of e.members) if (m.injected) pool.used(m.rollout);
}
