import { execFile } from 'node:child_process';

export interface Count {
  readonly episodes: number;
  readonly successes: number;
}
/** By family; of MiniWoB++, by page. */
export type Counts = Readonly<Record<string, Count>>;
/** Of one split; records of earlier versions have no families. */
export interface SplitCount extends Count {
  readonly perFamily?: Counts;
}
/** What `evaluate` answers. */
export interface EvaluatedRow extends Count {
  readonly errors: number;
  readonly perFamily: Counts;
}

/** What the runtime's command line answers with `--json`. Rejects with what it said instead, and when the signal fires. */
export function cliJson<T>(runtime: string, args: readonly string[], signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const how = { encoding: 'utf8' as const, maxBuffer: 1 << 28, signal };
    // What fails says so in JSON too: of task files that cannot run, say.
    execFile(process.execPath, [runtime, ...args, '--json'], how, (_error, out, err) => {
      if (out.trim() === '') reject(new Error(`${args.join(' ')}: ${err.trim().slice(-2000)}`));
      else resolve(JSON.parse(out) as T);
    });
  });
}
