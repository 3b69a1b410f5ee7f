import { StudioError } from '../domain/index.js';
import type { FamilyId, PolicyVersion, RolloutId, TaskId, Trajectory } from '../domain/index.js';
import type { PoolConfig } from './config.js';
import { choosePoolEntry, usable } from './curation/poolInjection.js';
import type { PoolEntry } from './curation/poolInjection.js';

/** What the journal keeps of an entry; uses and ranks follow from the order of events. */
export type PoolEntryInfo = Omit<PoolEntry, 'added' | 'uses' | 'lastUsed'>;

export interface PoolStats { readonly entries: number; readonly families: number; readonly usable: number; readonly injections: number; readonly byProvenance: Readonly<Partial<Record<PoolEntry['provenance'], number>>> }

/** Successful trajectories to learn from when a group has none. Pure: changed only by `add`, `remove` and `used`, which the journal replays. */
export class ExperiencePool {
  readonly #config: PoolConfig;
  readonly #entries = new Map<RolloutId, PoolEntry>();
  #rank = 0;
  #injections = 0;
  constructor(config: PoolConfig) { this.#config = config; }

  get(id: RolloutId): PoolEntry | undefined { return this.#entries.get(id); }
  entries(): PoolEntry[] { return [...this.#entries.values()]; }

  add(info: PoolEntryInfo): void { this.#entries.set(info.id, { ...info, added: ++this.#rank, uses: 0, lastUsed: 0 }); }
  remove(id: RolloutId): void { this.#entries.delete(id); }
  used(id: RolloutId): void {
    const e = this.#entries.get(id);
    this.#injections++;
    if (e) this.#entries.set(id, { ...e, uses: e.uses + 1, lastUsed: ++this.#rank });
  }

  choose(task: TaskId, family: FamilyId, version: PolicyVersion): PoolEntry | undefined {
    return choosePoolEntry(this.entries(), task, family, version, this.#config);
  }

  /** Whether a fresh success is worth an entry: the policy's own only when configured, and never the same task with the same actions twice. */
  wants(info: PoolEntryInfo): boolean {
    if (!this.#config.enabled || this.#entries.has(info.id)) return false;
    if (info.provenance === 'probe' || (info.provenance === 'rollout' && !this.#config.addSuccesses)) return false;
    const sig = info.signature.join(' ');
    return !this.entries().some((e) => e.task === info.task && e.steps === info.steps && e.signature.join(' ') === sig && e.provenance === info.provenance && e.uses < this.#config.maxUses);
  }

  /** Entries to give up so that one more of a family stays within its share: used-up and aged ones first, then the policy's oldest, demonstrations last. */
  surplus(family: FamilyId, version: PolicyVersion): RolloutId[] {
    const mine = this.entries().filter((e) => e.family === family);
    const worth = (e: PoolEntry): number => (usable(e, version, this.#config) ? 2 : 0) + (e.provenance === 'rollout' ? 0 : 1);
    return mine.sort((a, b) => worth(a) - worth(b) || a.added - b.added).slice(0, Math.max(0, mine.length + 1 - this.#config.perFamily)).map((e) => e.id);
  }

  stats(version: PolicyVersion): PoolStats {
    const all = this.entries(), byProvenance: Partial<Record<PoolEntry['provenance'], number>> = {};
    for (const e of all) byProvenance[e.provenance] = (byProvenance[e.provenance] ?? 0) + 1;
    return { entries: all.length, families: new Set(all.map((e) => e.family)).size, usable: all.filter((e) => usable(e, version, this.#config)).length, injections: this.#injections, byProvenance };
  }
}

/** The pool's view of a trajectory. Refuses anything but a success: nothing else may be injected. */
export function poolEntryOf(t: Trajectory): PoolEntryInfo {
  if (t.outcome.kind !== 'success') throw new StudioError('internal', `Trajectory ${t.id} did not succeed and cannot join the experience pool.`, 'Add only trajectories whose outcome is a success.');
  const versions = t.steps.flatMap((s) => (s.version === undefined ? [] : [s.version]));
  return {
    id: t.id, task: t.task, family: t.family, steps: t.steps.length, provenance: t.provenance.kind,
    ...(versions.length > 0 ? { version: Math.max(...versions) } : {}),
    signature: t.steps.flatMap((s) => s.actions.map((a) => a.type)),
  };
}
