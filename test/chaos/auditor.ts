import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { readRecords, type Found } from './journal.js';

/** What an audit of a run's journal found. All of it must be 0 but `records`, `redone_steps` and what was damaged on purpose. */
export interface Audit {
  readonly records: number;
  /** Accepted records (seen on disk before a fault) that are not there any more, those damaged on purpose left out. */
  readonly lost: number;
  /** Records with a number, steps of a rollout, ids of rollouts, groups or batches that come twice. */
  readonly duplicated: number;
  /** Groups trained twice, and claimed ones that were neither trained nor given back. */
  readonly trained_twice: number;
  readonly skipped: number;
  /** Steps of rollouts that a fault cut short: they are done again. */
  readonly redone_steps: number;
  /** Rollouts retired because a record of theirs is damaged. */
  readonly corrupt: number;
  /** Each in a sentence. */
  readonly problems: readonly string[];
}

interface Rollout {
  state: string;
  group: string;
  steps: Set<number>;
  readonly damaged: boolean;
}
const END = new Set(['trained', 'retired']);

/** What the controller knows of a run. */
export interface Known {
  /** Checksums of records by number, as they were on disk before faults. */
  readonly seen: ReadonlyMap<number, number>;
  /** Numbers of records that were damaged on purpose, and how many checkpoints were. */
  readonly damaged: ReadonlySet<number>;
  readonly checkpoints: number;
  /** Notes on trajectories that were acknowledged. */
  readonly notes: ReadonlySet<string>;
}

/** Judges the journal of a run; `closed`: the run was stopped, so that nothing may be under way. */
export function audit(run: string, known: Known, closed: boolean): Audit {
  const { records, holes } = readRecords(join(run, 'journal')),
    auditor = new Auditor(run, records, known);
  return auditor.judge(holes.filter((h) => !h.tail).length, closed);
}

class Auditor {
  readonly #run: string;
  readonly #records: readonly Found[];
  readonly #seen: ReadonlyMap<number, number>;
  readonly #damaged: ReadonlySet<number>;
  readonly #known: Known;
  readonly #problems: string[] = [];
  readonly #rollouts = new Map<string, Rollout>();
  readonly #claims = new Map<string, { readonly rollouts: readonly string[]; readonly groups: readonly string[] }>();
  readonly #trainedGroups = new Set<string>();
  readonly #groups = new Set<string>();
  readonly #batches = new Set<string>();
  #lost = 0;
  #duplicated = 0;
  #twice = 0;
  #skipped = 0;
  #redone = 0;
  #corrupt = 0;
  #version = 0;
  #newest = 0;
  #standIns = 0;

  constructor(run: string, records: readonly Found[], known: Known) {
    this.#run = run;
    this.#records = records;
    this.#known = known;
    this.#seen = known.seen;
    this.#damaged = known.damaged;
  }

  judge(holes: number, closed: boolean): Audit {
    const damagedOnPurpose = this.#damaged.size;
    this.#numbers();
    for (const r of this.#records) this.#take(r);
    const flight = [...this.#rollouts].filter(([, r]) => !END.has(r.state));
    if (closed)
      for (const [id, r] of flight)
        if (!['recorded', 'grouped'].includes(r.state)) this.#say(`${id} is ${r.state} in a closed run`);
    for (const [batch, c] of this.#claims) {
      if (!closed) break;
      this.#skipped += c.groups.length;
      this.#say(`${batch} was claimed, and neither trained nor given back`);
    }
    if (holes > damagedOnPurpose) this.#say(`${holes} damaged stretches, of which ${damagedOnPurpose} on purpose`);
    this.#checkpoint();
    this.#annotations();
    return {
      records: this.#records.length,
      lost: this.#lost,
      duplicated: this.#duplicated,
      trained_twice: this.#twice,
      skipped: this.#skipped,
      redone_steps: this.#redone,
      corrupt: this.#corrupt,
      problems: this.#problems,
    };
  }

  /** Numbers follow one another; what was seen on disk is there, bit for bit. */
  #numbers(): void {
    const there = new Map<number, number>();
    let next = 0;
    for (const { seq, crc } of this.#records) {
      if (there.has(seq)) {
        this.#duplicated++;
        this.#say(`two records have the number ${seq}`);
      }
      there.set(seq, crc);
      for (; next < seq; next++)
        if (!this.#damaged.has(next)) {
          this.#lost++;
          this.#say(`record ${next} is missing`);
        }
      next = Math.max(next, seq + 1);
    }
    for (const [seq, crc] of this.#seen)
      if (!this.#damaged.has(seq) && there.get(seq) !== crc && seq < next) {
        this.#lost++;
        this.#say(`record ${seq} is not the one that was accepted`);
      }
    for (const seq of this.#seen.keys())
      if (seq >= next && !this.#damaged.has(seq)) {
        this.#lost++;
        this.#say(`record ${seq} was accepted and is gone from the end`);
      }
  }

  #take({ event: e, seq }: Found): void {
    const text = (k: string): string => String(e[k] ?? '');
    switch (e.type) {
      case 'group.opened':
        this.#once(this.#groups, text('group'), 'group');
        return;
      case 'rollout.queued': {
        const { rollout, group } = e['order'] as { rollout: string; group: string };
        if (this.#rollouts.has(rollout)) {
          this.#duplicated++;
          this.#say(`rollout ${rollout} was ordered twice`);
        }
        this.#rollouts.set(rollout, { state: 'queued', group, steps: new Set(), damaged: false });
        return;
      }
      case 'rollout.started':
        this.#move(text('rollout'), ['queued'], 'running');
        return;
      case 'rollout.step': {
        const r = this.#rollouts.get(text('rollout')),
          { index } = e['step'] as { index: number };
        if (r?.steps.has(index)) {
          this.#duplicated++;
          this.#say(`step ${index} of ${text('rollout')} was recorded twice (record ${seq})`);
        }
        r?.steps.add(index);
        return;
      }
      case 'trajectory.recorded': {
        const head = e['head'] as {
          id: string;
          steps: number;
          provenance: { kind: string };
          outcome: { kind: string };
        };
        if (head.provenance.kind !== 'rollout') return;
        const r = this.#rollouts.get(head.id);
        this.#move(head.id, ['running'], head.outcome.kind === 'error' ? 'retired' : 'recorded');
        if (r && r.steps.size !== head.steps && this.#damaged.size === 0) {
          this.#lost++;
          this.#say(`${head.id} has ${r.steps.size} steps in the journal and says it has ${head.steps}`);
        }
        return;
      }
      case 'rollout.retired': {
        const r = this.#rollouts.get(text('rollout'));
        if (text('reason') === 'lost' && r) this.#redone += r.steps.size;
        this.#retire(text('rollout'), e['cause']);
        return;
      }
      case 'group.formed':
        for (const m of e['members'] as { rollout: string; injected: boolean }[])
          if (!m.injected) this.#move(m.rollout, ['recorded'], 'grouped');
        for (const m of e['retired'] as { rollout: string }[]) this.#retire(m.rollout, undefined);
        return;
      case 'group.dropped':
        for (const m of e['retired'] as { rollout: string }[]) this.#retire(m.rollout, undefined);
        return;
      case 'group.retired':
        for (const r of e['rollouts'] as string[]) this.#retire(r, e['cause']);
        return;
      case 'batch.claimed':
        this.#claimed(e as unknown as Claim);
        return;
      case 'batch.released':
        for (const g of e['groups'] as { rollouts: string[] }[])
          for (const r of g.rollouts) this.#move(r, ['claimed'], 'grouped');
        this.#claims.delete(text('batch'));
        return;
      case 'batch.trained':
        this.#trained(e as unknown as Trained);
        return;
      case 'checkpoint':
        this.#made(Number(e['version']));
        this.#standIn(e['learned'] as Learned | undefined);
        return;
      default:
    }
  }

  #claimed(e: Claim): void {
    this.#once(this.#batches, e.batch, 'batch');
    for (const g of e.groups) {
      for (const r of g.rollouts) this.#move(r, ['grouped'], 'claimed');
      if (this.#trainedGroups.has(g.group)) {
        this.#twice++;
        this.#say(`group ${g.group} was claimed again after it was trained`);
      }
    }
    this.#claims.set(e.batch, { rollouts: e.groups.flatMap((g) => g.rollouts), groups: e.groups.map((g) => g.group) });
    // Weights are continuous: what is trained is what was last made.
    if (e.version !== this.#version && this.#damaged.size === 0)
      this.#say(`${e.batch} was claimed for version ${e.version}, the last weights are version ${this.#version}`);
    const bound = this.#bound();
    for (const lag of e.lags)
      if (lag > bound) this.#say(`${e.batch} has a rollout that lags ${lag} updates, over the bound ${bound}`);
  }
  #trained(e: Trained): void {
    const claim = this.#claims.get(e.batch);
    this.#claims.delete(e.batch);
    for (const r of e.rollouts) {
      if (this.#rollouts.get(r)?.state === 'trained') {
        this.#twice++;
        this.#say(`${r} was trained twice`);
      }
      this.#move(r, ['claimed'], 'trained');
    }
    for (const g of claim?.groups ?? []) this.#trainedGroups.add(g);
    this.#made(e.version);
  }
  #made(version: number): void {
    if (version !== this.#version + 1 && this.#damaged.size === 0)
      this.#say(`version ${version} follows version ${this.#version}`);
    this.#version = version;
    this.#newest = Math.max(this.#newest, version);
  }
  #checkpoint(): void {
    if (this.#version === 0) return;
    const name = `v${String(this.#version).padStart(6, '0')}`;
    if (!existsSync(join(this.#run, 'checkpoints', name, 'manifest.json')))
      this.#say(`the checkpoint ${basename(name)} of the last weights is not there`);
  }
  /** Weights that stand in for damaged ones are made where a checkpoint was damaged on purpose, and nowhere else. */
  #standIn(learned: Learned | undefined): void {
    if (learned?.source === 'stand-in' && ++this.#standIns > this.#known.checkpoints)
      this.#say(`version ${learned.values['of']} was given up, and its checkpoint was not damaged on purpose`);
  }
  /** What people wrote, and were told is kept, is there once. */
  #annotations(): void {
    const dir = join(this.#run, 'annotations');
    if (!existsSync(dir)) {
      if (this.#known.notes.size > 0) this.#say('annotations were acknowledged and there are none');
      return;
    }
    const { records, holes } = readRecords(dir),
      texts = records.flatMap(({ event: e }) => [...JSON.stringify(e).matchAll(/"text":"([^"]*)"/g)].map((m) => m[1]!)),
      numbers = records.map((r) => r.seq);
    if (new Set(numbers).size !== numbers.length) this.#say('two annotations have one number');
    if (holes.some((h) => !h.tail)) this.#say('the log of annotations is damaged');
    for (const note of this.#known.notes)
      if (!texts.includes(note)) {
        this.#lost++;
        this.#say(`the note '${note}' was acknowledged and is gone`);
      }
  }
  #bound(): number {
    const { config } = JSON.parse(readFileSync(join(this.#run, 'run.json'), 'utf8')) as {
      config: { curation: { staleness: { enabled: boolean; eta: number } } };
    };
    const { enabled, eta } = config.curation.staleness;
    return enabled ? eta : Infinity;
  }

  #retire(rollout: string, cause: unknown): void {
    if (cause === 'corrupt') this.#corrupt++;
    this.#move(rollout, ['queued', 'running', 'recorded', 'grouped', 'claimed'], 'retired');
  }
  #move(rollout: string, from: readonly string[], to: string): void {
    const r = this.#rollouts.get(rollout);
    if ((!r || !from.includes(r.state)) && this.#damaged.size === 0)
      this.#say(`${rollout} goes from ${r?.state ?? 'nowhere'} to ${to}`);
    if (r) r.state = to;
  }
  #once(all: Set<string>, id: string, what: string): void {
    if (all.has(id) && this.#damaged.size === 0) {
      this.#duplicated++;
      this.#say(`the ${what} ${id} comes twice`);
    }
    all.add(id);
  }
  #say(problem: string): void {
    if (this.#problems.length < 50) this.#problems.push(problem);
  }
}
interface Learned {
  readonly source: string;
  readonly values: Readonly<Record<string, number>>;
}
interface Claim {
  readonly batch: string;
  readonly version: number;
  readonly lags: readonly number[];
  readonly groups: readonly { readonly group: string; readonly rollouts: readonly string[] }[];
}
interface Trained {
  readonly batch: string;
  readonly version: number;
  readonly rollouts: readonly string[];
}
