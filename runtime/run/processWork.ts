import type { WorkOf } from '../concurrency/pulse.js';
import { readForeignText } from '../files/foreignFile.js';

/** Linux counts processor time in ticks of 10 ms (USER_HZ), whatever its kernel was built with. */
const TICK_MS = 10;
/** Longer than the fields of any process. */
const STAT_BYTES = 8192;

/** The work of a process by Linux's /proc; undefined elsewhere, and for one that is gone. */
export const processWork: WorkOf = async (pid) => {
  if (process.platform !== 'linux') return undefined;
  const text = await readForeignText(`/proc/${pid}/stat`, STAT_BYTES).catch(() => undefined);
  return text === undefined ? undefined : workOf(text);
};

/** Fields follow the program's name, which may itself hold brackets and spaces. */
export function workOf(stat: string): { readonly cpuMs: number; readonly busy: boolean } | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '),
    state = fields[0],
    ticks = Number(fields[11]) + Number(fields[12]);
  return state === undefined || !Number.isFinite(ticks)
    ? undefined
    : { cpuMs: ticks * TICK_MS, busy: state === 'R' || state === 'D' };
}
