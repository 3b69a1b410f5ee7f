import { chmod, mkdir, mkdtemp, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orUndefined } from '../../concurrency/failures.js';
import { wordsOf, type Answered, type Reply } from './ask.js';
import type { Table } from './table.js';

/** A folder in which this machine can write what a model server should be able to read. */
export interface SharedFolder {
  readonly dir: string;
  /** It is not there yet, and is taken away again when it is empty. */
  readonly isNew: boolean;
  /** The run itself writes adapters there; otherwise another machine does, and this one may have another folder. */
  readonly written: boolean;
}
/** Asks the server to load the adapter in a folder. */
export type AskToLoad = (folder: string) => Promise<Reply>;

/** As long as each other, so that the words about them differ in nothing else. */
const THERE = 'there',
  ABSENT = 'other';
/** vLLM refuses an adapter that has layers of its own, and says which, before it looks for weights. */
const UNFIT = {
  peft_type: 'LORA',
  task_type: 'CAUSAL_LM',
  r: 8,
  lora_alpha: 8,
  target_modules: ['q_proj'],
  modules_to_save: ['dart_studio_doctor'],
};

/**
 * Whether a server reads what this machine writes: it is asked for an adapter that is there, but that it must refuse,
 * and for one that is not there. Where it says the same of both, it does not see the folder. Nothing stays in either.
 */
export async function checkSharedFolder(shared: SharedFolder, load: AskToLoad, table: Table): Promise<void> {
  const { dir, written, isNew } = shared,
    folder = await orUndefined(folderIn(dir), 'nothing can be written there: another row says so');
  try {
    if (folder === undefined) return;
    await fill(join(folder, THERE));
    const there = await load(join(folder, THERE)),
      absent = await load(join(folder, ABSENT));
    if ('away' in there || 'away' in absent) return;
    if (!same(there, absent)) {
      table.ok('folder of adapters', `it reads what this machine writes in ${dir}`);
      return;
    }
    const what = `it does not see what this machine writes in ${dir} (${wordsOf(there)})`,
      remedy = `Mount that folder on the machine of the server, or in its container, at the same path, readable for the server's user.`;
    if (written) table.wrong('folder of adapters', what, remedy);
    else
      table.doubtful(
        'folder of adapters',
        what,
        `${remedy} Leave it where the engine writes to the server's folder from another machine.`,
      );
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    if (isNew) await orUndefined(rmdir(dir), 'somebody uses it by now');
  }
}

const same = (a: Answered, b: Answered): boolean =>
  a.status === b.status && a.text.replaceAll(THERE, ABSENT) === b.text.replaceAll(THERE, ABSENT);

async function folderIn(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true });
  const folder = await mkdtemp(join(dir, '.dart-studio-doctor-'));
  await chmod(folder, 0o755);
  return folder;
}
/** Readable by everyone, as an engine's adapters are. */
async function fill(folder: string): Promise<void> {
  await mkdir(folder, { mode: 0o755 });
  await writeFile(join(folder, 'adapter_config.json'), JSON.stringify(UNFIT), { mode: 0o644 });
}
