import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { errorCode, messageOf, StudioError } from '../domain/index.js';
import { isObject, jsonOrNothing } from '../foreign/json.js';
import type { Options } from './options.js';

/** No figures are more. */
const MOST_BYTES = 1 << 26,
  BOUNDS = { depth: 32, values: 1_000_000 };

/**
 * The file that `--figures FILE` names; undefined: none. Looked at before a run begins: the option takes the word after
 * it, be it the run file, and what cannot be written would only come out after the training. Throws `config.invalid`.
 */
export async function figuresFile(o: Options): Promise<string | undefined> {
  const file = o['figures'];
  if (typeof file !== 'string') return undefined;
  const there = await stat(file).catch((e: unknown) => {
    if (errorCode(e) === 'ENOENT') return undefined;
    throw notWritten(file, e);
  });
  if (there?.isDirectory())
    throw new StudioError('config.invalid', `--figures ${file}: it is a folder.`, 'Name a file: --figures=FILE.');
  if (there?.isFile() && there.size > 0 && !(there.size < MOST_BYTES && (await holdsFigures(file))))
    throw new StudioError(
      'config.invalid',
      `--figures ${file}: it exists and holds no figures, and would be replaced. Is this the run file?`,
      `Write \`train ${file} --figures\`; or name another file: --figures=FILE.`,
    );
  await access(there ? file : dirname(resolve(file)), constants.W_OK).catch((e: unknown) => {
    throw notWritten(file, e);
  });
  return file;
}
const notWritten = (file: string, e: unknown): StudioError =>
  new StudioError(
    'config.invalid',
    `--figures ${file} cannot be written: ${messageOf(e)}`,
    'Name a file in a folder that exists and can be written to: --figures=FILE.',
    { cause: e },
  );

/** Whether a file is what this option wrote earlier. */
async function holdsFigures(file: string): Promise<boolean> {
  const v = jsonOrNothing(await readFile(file, 'utf8'), BOUNDS);
  return isObject(v) && typeof v['bench'] === 'string' && Array.isArray(v['rows']);
}
