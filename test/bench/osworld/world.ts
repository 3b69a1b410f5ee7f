import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { allImageContents } from '../../../runtime/service/desktopImage.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import { MadeFiles } from './states.js';

export const never = new AbortController().signal;
export const allImages = allImageContents;

/** Files of the right formats, made once with the evaluators' Python; again when how they are made has changed. */
export async function madeFiles(e: Evaluators): Promise<MadeFiles> {
  const script = resolve('test/bench/osworld/made.py'),
    version = createHash('sha256')
      .update(await readFile(script))
      .digest('hex')
      .slice(0, 12),
    dir = resolve('.cache', `osworld-made-${version}`);
  if (!existsSync(join(dir, 'gold.xz'))) {
    await mkdir(dir, { recursive: true });
    await promisify(execFile)(e.place.python, [script, dir]);
  }
  return new MadeFiles(dir);
}
