import { createHash } from 'node:crypto';
import { StudioError, canonicalAction } from '../domain/index.js';
import type { FamilyId, PolicyVersion, RolloutId, TaskId, Trajectory } from '../domain/index.js';
import type { HindsightConfig, PoolConfig } from './config.js';
import { atReuseCap, choosePoolEntry, unusable, usable } from './curation/poolInjection.js';
import type { PoolEntry } from './curation/poolInjection.js';

/** What the journal stores of an entry; uses and ranks follow from the order of events. */
export type PoolEntryInfo = Omit<PoolEntry, 'added' | 'uses' | 'lastUsed' | 'enabled'>;

export interface PoolStats {
  readonly entries: number;
  readonly families: number;
  readonly usable: number;
  readonly injections: number;
  readonly byProvenance: Readonly<Partial<Record<PoolEntry['provenance'], number>>>;
}

/**
 * Successful trajectories to learn from when a group has none. Pure: changed only by `add`, `remove`, `switch` and
 * `used`, which the journal replays.
 */
export class ExperiencePool {
  readonly #config: PoolConfig;
  /** Most relabelled successes of one family. */
  readonly #maxRelabelled: number;
  readonly #entries = new Map<RolloutId, PoolEntry>();
  /** Removed by a person: not imitated either. */
  readonly #rejected = new Set<RolloutId>();
  #rank = 0;
  #injections = 0;
  constructor(config: PoolConfig, hindsight?: Pick<HindsightConfig, 'maxPerFamily'>) {
    this.#config = config;
    this.#maxRelabelled = hindsight?.maxPerFamily ?? Infinity;
  }

  get(id: RolloutId): PoolEntry | undefined {
    return this.#entries.get(id);
  }
  entries(): PoolEntry[] {
    return [...this.#entries.values()];
  }

  get enabled(): boolean {
    return this.#config.enabled;
  }

  add(info: PoolEntryInfo): void {
    this.#rejected.delete(info.id);
    this.#entries.set(info.id, { ...info, added: ++this.#rank, uses: 0, lastUsed: 0, enabled: true });
  }
  remove(id: RolloutId, by?: 'person'): void {
    this.#entries.delete(id);
    if (by) this.#rejected.add(id);
  }
  switch(id: RolloutId, enabled: boolean): void {
    const e = this.#entries.get(id);
    if (e) this.#entries.set(id, { ...e, enabled });
  }
  /** Sets the content hash of an entry whose record lacks it. */
  identify(id: RolloutId, content: string): void {
    const e = this.#entries.get(id);
    if (e && e.content === undefined) this.#entries.set(id, { ...e, content });
  }
  /** Entries without a content hash that may do the same as `info`. */
  unidentified(info: PoolEntryInfo): RolloutId[] {
    return this.entries().flatMap((e) => (e.content === undefined && alike(e, info) ? [e.id] : []));
  }
  /**
   * The entry with the same actions in the same task, whoever made it. `spent`: that entry may not be injected (its
   * uses or age, or because it was relabelled) while `info` may.
   */
  twin(info: PoolEntryInfo, version: PolicyVersion): { readonly id: RolloutId; readonly spent: boolean } | undefined {
    const e = this.entries().find((x) => x.id !== info.id && alike(x, info) && x.content === info.content),
      why = e && unusable(e, version, this.#config);
    return (
      e && {
        id: e.id,
        spent: why === 'used up' || why === 'aged' || (why === 'imitated' && info.provenance !== 'hindsight'),
      }
    );
  }

  /** Whether a person disabled or removed it: nothing is learned from it. */
  rejected(id: RolloutId): boolean {
    return this.#rejected.has(id) || this.#entries.get(id)?.enabled === false;
  }
  used(id: RolloutId): void {
    const e = this.#entries.get(id);
    this.#injections++;
    if (e) this.#entries.set(id, { ...e, uses: e.uses + 1, lastUsed: ++this.#rank });
  }

  choose(task: TaskId, family: FamilyId, version: PolicyVersion): PoolEntry | undefined {
    return choosePoolEntry(this.entries(), task, family, version, this.#config);
  }

  /**
   * Why the rules refuse a new success: the policy's own join only when configured, and a task has no two entries with
   * the same kinds of actions, unless a person made one. `gone`: an entry that it replaces. Undefined when it joins.
   */
  refusal(info: PoolEntryInfo, gone?: RolloutId): string | undefined {
    if (info.provenance === 'rollout' && !this.#config.addSuccesses)
      return "the run file keeps the policy's own successes out of the pool";
    return info.provenance !== 'human' &&
      this.entries().some(
        (e) => e.id !== gone && alike(e, info) && e.provenance === info.provenance && !atReuseCap(e, this.#config),
      )
      ? 'the pool has a success of the same task with the same actions'
      : undefined;
  }

  /**
   * Entries to remove so that this one stays within the limit of its family: used-up and aged ones first, then the
   * policy's oldest, demonstrations last. Relabelled successes have a separate limit.
   */
  surplus({ family, provenance }: PoolEntryInfo, version: PolicyVersion, gone?: RolloutId): RolloutId[] {
    const relabelled = provenance === 'hindsight',
      limit = relabelled ? this.#maxRelabelled : this.#config.maxPerFamily,
      mine = this.entries().filter(
        (e) => e.family === family && e.id !== gone && (e.provenance === 'hindsight') === relabelled,
      );
    const worth = (e: PoolEntry): number =>
      (usable(e, version, this.#config) ? 2 : 0) + (e.provenance === 'rollout' ? 0 : 1);
    return mine
      .sort((a, b) => worth(a) - worth(b) || a.added - b.added)
      .slice(0, Math.max(0, mine.length + 1 - limit))
      .map((e) => e.id);
  }

  stats(version: PolicyVersion): PoolStats {
    const all = this.entries(),
      byProvenance: Partial<Record<PoolEntry['provenance'], number>> = {};
    for (const e of all) byProvenance[e.provenance] = (byProvenance[e.provenance] ?? 0) + 1;
    return {
      entries: all.length,
      families: new Set(all.map((e) => e.family)).size,
      usable: all.filter((e) => usable(e, version, this.#config)).length,
      injections: this.#injections,
      byProvenance,
    };
  }
}

/** The same task in as many steps with the same kinds of actions. */
const alike = (a: PoolEntryInfo, b: PoolEntryInfo): boolean =>
  a.task === b.task && a.steps === b.steps && a.signature.join(' ') === b.signature.join(' ');

/**
 * Hash of what a trajectory does: its instruction and the values of its actions. Screens are left out, because two
 * desktops never draw exactly the same; so is who acted.
 */
export const poolContent = (t: Trajectory): string =>
  createHash('sha256')
    .update(JSON.stringify([t.instruction, t.steps.map((s) => s.actions.map(canonicalAction))]))
    .digest('hex')
    .slice(0, 24);

/**
 * The pool entry of a trajectory. Throws unless it is a success or a person gave a reason (`override`): nothing else
 * may be injected.
 */
export function poolEntryOf(t: Trajectory, override?: string): PoolEntryInfo {
  if (t.outcome.kind !== 'success' && override === undefined)
    throw new StudioError(
      'internal',
      `Trajectory ${t.id} did not succeed and cannot join the experience pool.`,
      'Add only trajectories whose outcome is a success.',
    );
  const versions = t.steps.flatMap((s) => (s.version === undefined ? [] : [s.version]));
  return {
    id: t.id,
    task: t.task,
    family: t.family,
    steps: t.steps.length,
    provenance: t.provenance.kind,
    version: versions.length > 0 ? Math.max(...versions) : undefined,
    signature: t.steps.flatMap((s) => s.actions.map((a) => a.type)),
    content: poolContent(t),
    override,
  };
}
