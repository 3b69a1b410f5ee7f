import { rename } from 'node:fs/promises';
import { errorCode, messageOf } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { readForeignText } from '../files/foreignFile.js';
import { replaceFile } from '../files/replaceFile.js';

/** Records of the daemon's own, which it reads when it starts and writes whole from then on: `queue.json`. */

/** Beside `file`, under a name of its own. */
const asideOf = (file: string): string => file.replace(/(\.json)?$/, `.unreadable-${Date.now()}.json`);

/**
 * The text of such a record; undefined where there is none. One that is there and cannot be read is set aside, as what
 * is written next would replace it; `say` is told where it is. Never rejects.
 */
export async function readOwnRecord(
  file: string,
  o: { readonly most: number; readonly say: (message: string) => void },
): Promise<string | undefined> {
  try {
    return await readForeignText(file, o.most);
  } catch (e) {
    if (errorCode(e) === 'ENOENT') return undefined;
    const aside = asideOf(file),
      kept = await orUndefined(
        rename(file, aside).then(() => aside),
        'a disk that does not even rename will not replace it either',
      );
    o.say(
      `${file} cannot be read: ${messageOf(e)}. ${kept === undefined ? 'It starts empty.' : `It is kept as ${kept}.`}`,
    );
    return undefined;
  }
}

/** Keeps a copy of a record of which something was not understood, and will not be written again. Never rejects. */
export async function keepRecord(file: string, text: string, say: (message: string) => void): Promise<void> {
  const aside = asideOf(file),
    kept = await orUndefined(
      replaceFile(aside, text, { mode: 0o600 }).then(() => aside),
      'said below',
    );
  say(`Part of ${file} is not understood. ${kept === undefined ? 'It is left out.' : `All of it is kept as ${kept}.`}`);
}
