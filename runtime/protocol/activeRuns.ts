/**
 * `active-runs.json` in the daemon's storage folder: the runs that were active. A daemon that starts and finds one goes
 * on with it, because the last daemon ended without finishing it. Pure.
 */
export const activeRunsFile = 'active-runs.json';
/** More bytes than the file ever has. */
export const activeRunsBytes = 1 << 20;

export interface ActiveRun {
  /** Folder of the run. */
  readonly run: string;
  readonly id: string;
  readonly name: string;
  /** ms since the epoch. */
  readonly since: number;
  /** The whole budget that it was started or resumed with. */
  readonly minutes?: number;
  /** The other limits of its run file no longer hold: it was given more minutes. */
  readonly alone?: boolean;
  /** A person had paused it. */
  readonly paused?: boolean;
  /** Daemons that ended while it was active, one after another, without anything new of it on disk. */
  readonly deaths: number;
  /** The same, without weights, an evaluation or ten minutes of work. */
  readonly idleDeaths: number;
  /** Why it is left stopped. */
  readonly left?: string;
}

/** What a daemon did, when it started, about a run that was active before. */
export interface Recovered {
  readonly run: string;
  readonly id: string;
  readonly name: string;
  /** `left`: it is not resumed by itself any more. `failed`: it could not be resumed; the next start tries again. */
  readonly outcome: 'resumed' | 'left' | 'failed';
  /** One or two sentences for people. */
  readonly message: string;
  readonly at: number;
}

/** The runs of a record; none of one that is damaged. */
export function parseActiveRuns(text: string): ActiveRun[] {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return [];
  }
  const { runs } = fieldsOf(found);
  return Array.isArray(runs) ? runs.flatMap(activeRunOf) : [];
}

const fieldsOf = (x: unknown): Readonly<Record<string, unknown>> =>
  typeof x === 'object' && x !== null ? (x as Record<string, unknown>) : {};
const isCount = (x: unknown): x is number => Number.isInteger(x) && (x as number) >= 0;

function activeRunOf(x: unknown): ActiveRun[] {
  const { run, id, name, since, minutes, alone, paused, deaths, idleDeaths, left } = fieldsOf(x);
  if (typeof run !== 'string' || typeof id !== 'string' || typeof name !== 'string') return [];
  if (!isCount(since) || !isCount(deaths) || !isCount(idleDeaths)) return [];
  return [
    {
      run,
      id,
      name,
      since,
      deaths,
      idleDeaths,
      ...(typeof minutes === 'number' && minutes > 0 ? { minutes } : {}),
      ...(alone === true ? { alone } : {}),
      ...(paused === true ? { paused } : {}),
      ...(typeof left === 'string' ? { left } : {}),
    },
  ];
}
