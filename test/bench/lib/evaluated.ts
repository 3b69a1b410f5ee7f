import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeAtomic } from './experiments.js';

export interface Count {
  readonly episodes: number;
  readonly successes: number;
}
/** By family; of MiniWoB++, by page. */
export type Counts = Readonly<Record<string, Count>>;
export interface EvaluatedRow extends Count {
  readonly errors: number;
  readonly perFamily: Counts;
}

/** What the runtime's command line answers with `--json`. Throws with what it said instead. */
export function cliJson<T>(runtime: string, ...args: readonly string[]): T {
  const r = spawnSync(process.execPath, [runtime, ...args, '--json'], { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (r.stdout.trim() === '') throw new Error(`${args.join(' ')}: ${r.stderr.trim().slice(-2000)}`);
  return JSON.parse(r.stdout) as T;
}

/** `evaluate` of a run folder, measured once: what `file` has is read back. */
export function evaluated(runtime: string, file: string, args: readonly string[]): EvaluatedRow {
  if (!existsSync(file)) writeAtomic(file, JSON.stringify(cliJson<EvaluatedRow>(runtime, 'evaluate', ...args)));
  return JSON.parse(readFileSync(file, 'utf8')) as EvaluatedRow;
}
