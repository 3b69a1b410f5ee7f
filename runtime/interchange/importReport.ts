import type { Draft, Found, ImportFormat, Problem } from './types.js';

export interface ImportProgress {
  readonly done: number;
  readonly of: number;
  readonly imported: number;
  readonly frames: number;
  readonly problems: number;
}

/** The contents of a source, before anything is written. Pictures are found and measured, not decoded. */
export interface Preview {
  readonly path: string;
  readonly formats: Readonly<Partial<Record<ImportFormat, number>>>;
  readonly trajectories: number;
  readonly steps: number;
  readonly successes: number;
  readonly failures: number;
  readonly tasks: number;
  /** Of `trajectories`: imported into the run by an earlier import. */
  readonly already: number;
  /** The first ones; `problemCount` counts all. */
  readonly problems: readonly Problem[];
  readonly problemCount: number;
  readonly notes: Readonly<Record<string, number>>;
}
export interface ImportReport extends Omit<Preview, 'trajectories' | 'steps' | 'successes' | 'failures' | 'tasks'> {
  readonly run: string;
  readonly imported: number;
  readonly successes: number;
  readonly steps: number;
  readonly pooled: number;
  /** Successes that did not join the pool, by reason. */
  readonly notPooled: Readonly<Record<string, number>>;
  /** Left out because the run, or the source itself, holds the same: where, and which trajectory it is. */
  readonly duplicates: readonly { readonly where: string; readonly of: string }[];
  readonly duplicateCount: number;
  readonly stopped: boolean;
}

/** Most problems and duplicates that are listed one by one; further ones are counted. */
const listed = 200;
export class Bounded<T> {
  readonly list: T[] = [];
  count = 0;
  add(x: T): void {
    this.count++;
    if (this.list.length < listed) this.list.push(x);
  }
}
export class Counts {
  readonly by: Record<string, number> = {};
  add(k: string): void {
    this.by[k] = (this.by[k] ?? 0) + 1;
  }
}

/** Counts what was found in a source, or taken from it. */
export class Tally {
  readonly problems = new Bounded<Problem>();
  readonly notes = new Counts();
  readonly formats: Partial<Record<ImportFormat, number>> = {};
  trajectories = 0;
  steps = 0;
  successes = 0;
  /** Imported into the run by an earlier import. */
  already = 0;

  add(d: Draft): void {
    this.trajectories++;
    this.formats[d.format] = (this.formats[d.format] ?? 0) + 1;
    this.steps += d.steps.length;
    if (d.outcome.reward >= 1) this.successes++;
    for (const n of d.notes) this.notes.add(n);
  }
}
export const whereOf = (f: Found): string => ('draft' in f ? f.draft.where : f.problem.where);
