import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SplitCount } from '../lib/evaluated.js';
import type { RunResult } from '../lib/experiments.js';
import type { Levels } from './mechanisms.js';
import type { Part } from './plan.js';

/** One line of runs.jsonl: a run, what its policy came to, and what it is a run of. */
export interface Recorded extends Omit<RunResult, 'splits'> {
  /** Of the plan (`planId`), and of the runtime's sources that made the run (`codeId`). */
  readonly plan: string;
  readonly code: string;
  /** Of the model; a starting policy, or a row that only stands beside it, is of none. */
  readonly part?: Part;
  readonly levels?: Levels;
  readonly measured: Readonly<Record<string, SplitCount & { readonly errors: number }>>;
  readonly measuredSeconds: number;
}

/**
 * Names the sources that runs are made by, pages left out: two commits that differ elsewhere have the same, and a change
 * that is not committed makes another.
 */
export function codeId(dir = 'runtime'): string {
  const hash = createHash('sha256'),
    files = readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((f) => f.isFile() && !/\.(md|pyc)$/.test(f.name))
      .map((f) => join(f.parentPath, f.name))
      .sort();
  for (const f of files) hash.update(`${f}\0`).update(readFileSync(f));
  return hash.digest('hex').slice(0, 12);
}

/** The runs of a file, oldest first. A last line that a crash cut short is taken off: its run is made again. */
export function readRecord(file: string): Recorded[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file, 'utf8'),
    whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole.length < text.length) writeFileSync(file, whole);
  return whole
    .split('\n')
    .filter((l) => l !== '')
    .map((l) => JSON.parse(l) as Recorded);
}
export const appendRecord = (file: string, run: Recorded): void => appendFileSync(file, JSON.stringify(run) + '\n');

/** What runs are of: those of one table are of the same. */
export type Identity = Pick<Recorded, 'plan' | 'code'>;
const difference = (a: Identity, b: Identity): string | undefined =>
  a.plan !== b.plan ? 'another plan' : a.code !== b.code ? 'other sources of the runtime' : undefined;

/** Why further runs do not belong to those of a file; undefined where they do. */
export function mixture(
  there: readonly Pick<Recorded, 'name' | 'plan' | 'code' | 'commit'>[],
  identity: Identity,
): string | undefined {
  const other = there.find((r) => difference(r, identity) !== undefined);
  return (
    other &&
    `${there.length} runs are recorded there, of ${difference(other, identity)} (${other.name}, commit ${other.commit}).`
  );
}

/**
 * The folder of run folders says what they are of, since a run that was made and not recorded is taken from there. Claims
 * it where nothing is there yet; else why it is not for these runs.
 */
export function claimWork(work: string, identity: Identity): string | undefined {
  const file = join(work, 'of.json');
  if (existsSync(file)) {
    const what = difference(JSON.parse(readFileSync(file, 'utf8')) as Identity, identity);
    return what && `the run folders there are of ${what}.`;
  }
  mkdirSync(work, { recursive: true });
  writeFileSync(file, JSON.stringify(identity) + '\n');
  return undefined;
}

/**
 * Throws where the starting policy that runs of a seed are recorded of is not the one that further runs would start from.
 */
export function checkStart(
  recorded: Pick<Recorded, 'name' | 'startedAt'> | undefined,
  made: Pick<RunResult, 'startedAt'> | undefined,
  work: string,
): void {
  if (recorded && recorded.startedAt !== made?.startedAt)
    throw new Error(
      `${recorded.name}: the starting policy that runs are recorded of is not in ${work}. Name its folder with --work, or begin a record of its own with --out.`,
    );
}
