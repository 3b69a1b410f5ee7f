import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { allImageContents } from '../../../runtime/service/desktopImage.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import { MadeFiles } from './states.js';

export const never = new AbortController().signal;
export const allImages = allImageContents;

/** Files of the right formats, made once with the evaluators' Python. */
export async function madeFiles(e: Evaluators): Promise<MadeFiles> {
  const dir = resolve('.cache', 'osworld-made');
  if (!existsSync(join(dir, 'made.yaml'))) {
    await mkdir(dir, { recursive: true });
    await promisify(execFile)(e.place.python, [resolve('test/bench/osworld/made.py'), dir]);
  }
  return new MadeFiles(dir);
}
