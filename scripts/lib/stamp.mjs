import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { load } from './load.mjs';

/** Which state of this repository makes a result, and when: asked before it is made. */
export const { stamp } = await load('test/bench/lib/report.ts');

/**
 * Puts a stamp, and what else is known, in front of a result that another program wrote since then. One of an earlier
 * run, left by a program that ended early, stays as it is.
 */
export function stampFile(file, made, more = {}) {
  const written = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (written < Date.parse(made.at)) return;
  const { commit: _c, at: _a, ...result } = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, `${JSON.stringify({ ...made, ...more, ...result }, null, 2)}\n`);
}
