import { orUndefined } from '../concurrency/failures.js';
import { ImportFolder, readSmall } from './folder.js';
import { importedJson } from './json.js';
import { Unusable, isObject, limits, textField } from './types.js';

/** Instructions of OSWorld's own task files, for results that do not repeat them. */
export class TaskFiles {
  readonly #folder: ImportFolder | undefined;
  private constructor(folder: ImportFolder | undefined) {
    this.#folder = folder;
  }
  static async open(dir: string | undefined): Promise<TaskFiles> {
    return new TaskFiles(dir === undefined ? undefined : await ImportFolder.open(dir));
  }

  /** `<dir>/examples/<domain>/<id>.json` and the like; undefined when there is none. */
  async instruction(domain: string, task: string): Promise<string | undefined> {
    if (!this.#folder) return undefined;
    for (const parts of [['examples', domain], [domain], []]) {
      const found = await orUndefined(
        this.#folder.maybe(this.#folder.root, [...parts, `${task}.json`].join('/')),
        "the id is the import's and may be no file name; an instruction is a help, not a need",
      );
      const o = found === undefined ? undefined : await orUndefined(jsonObject(found), 'likewise'),
        said = o && textField(o, 'instruction');
      if (said) return said;
    }
    return undefined;
  }
}

/** A small JSON file that must hold an object. Throws Unusable. */
export async function jsonObject(file: string): Promise<Record<string, unknown>> {
  const text = await readSmall(file, limits.json);
  const value = importedJson(text.replace(/^\ufeff/, ''));
  if (!isObject(value)) throw new Unusable('does not hold a JSON object');
  return value;
}
