import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const ENGINE = 'runtime/trainer/engine';

/** Of the engine's program and the packages it is pinned to: what a record of its tests is about. */
export function engineDigest(root = '.') {
  const program = readdirSync(join(root, ENGINE, 'dart_engine')).filter((f) => f.endsWith('.py')),
    files = [...program.map((f) => `dart_engine/${f}`), 'requirements.txt'].sort(),
    hash = createHash('sha256');
  for (const f of files)
    hash
      .update(`${f}\0`)
      .update(readFileSync(join(root, ENGINE, f), 'utf8').replaceAll('\r\n', '\n'))
      .update('\0');
  return hash.digest('hex').slice(0, 16);
}
