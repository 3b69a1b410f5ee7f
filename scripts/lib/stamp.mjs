import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';

/** Which state of this repository makes a result, and when: asked before it is made. */
export function stamp() {
  const git = (...argv) => spawnSync('git', argv, { encoding: 'utf8' }).stdout?.trim() ?? '',
    commit = git('rev-parse', '--short', 'HEAD'),
    changed = git('status', '--porcelain', '--untracked-files=no') !== '';
  return {
    commit: commit === '' ? 'unknown' : `${commit}${changed ? ', with changes' : ''}`,
    at: new Date().toISOString(),
  };
}

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
