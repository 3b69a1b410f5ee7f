import { randomUUID } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { orUndefined } from '../../concurrency/failures.js';
import { messageOf } from '../../domain/index.js';
import { wordsOf, type Answered, type Reply } from './ask.js';
import type { Table } from './table.js';

/** A folder in which this machine can write what a model server should be able to read. */
export interface SharedFolder {
  readonly dir: string;
  /**
   * The run itself writes adapters there. Otherwise it is a folder above, or another machine writes there and this one
   * may have another folder of that name.
   */
  readonly written: boolean;
}
/** Asks the server to load the adapter in a folder; nothing stays loaded. */
export type AskToLoad = (folder: string) => Promise<Reply>;

const ROW = 'folder of adapters';
/** As long as each other, so that the words about them differ in nothing else. */
const THERE = 'there',
  ABSENT = 'other';
const OWN_LAYER = 'dart_studio_doctor';
/** vLLM refuses an adapter that has layers of its own, and says so, before it looks for weights. */
const UNFIT = {
  peft_type: 'LORA',
  task_type: 'CAUSAL_LM',
  r: 8,
  lora_alpha: 8,
  target_modules: ['q_proj'],
  modules_to_save: [OWN_LAYER],
};

/**
 * Whether a server reads what this machine writes: it is asked for an adapter that is there, but that it must refuse,
 * and for one that is not there. Where it says the same of both, it does not see the folder; anything else than these
 * two is said to be unknown. The adapter is removed.
 */
export async function checkSharedFolder(shared: SharedFolder, load: AskToLoad, table: Table): Promise<void> {
  const { dir } = shared,
    folder = join(dir, `.dart-studio-doctor-${randomUUID()}`);
  try {
    await fill(join(folder, THERE));
    told(shared, await load(join(folder, THERE)), await load(join(folder, ABSENT)), table);
  } catch (e) {
    table.doubtful(
      ROW,
      `nothing can be written in ${dir} to ask for: ${messageOf(e)}`,
      'Whether the server sees it shows at the first publish.',
    );
  } finally {
    await orUndefined(rm(folder, { recursive: true, force: true }), 'it is an empty adapter of a few bytes');
  }
}

/** What is said of either, with one name for both. */
const nameless = ({ text }: Answered): string => text.replaceAll(THERE, ABSENT);

function told({ dir, written }: SharedFolder, there: Reply, absent: Reply, table: Table): void {
  const remedy = `Mount that folder on the machine of the server, or in its container, at the same path, readable for the server's user.`;
  if ('away' in there || 'away' in absent)
    table.doubtful(ROW, `the server does not say whether it sees ${dir}`, "Look at the server's log.");
  else if (/modules_to_save/.test(there.text)) table.ok(ROW, `it reads what this machine writes in ${dir}`);
  else if (there.status !== absent.status || nameless(there) !== nameless(absent))
    table.doubtful(
      ROW,
      `it is not clear whether it reads what this machine writes in ${dir} (of an adapter there: ${wordsOf(there)})`,
      remedy,
    );
  else {
    const what = `it does not see what this machine writes in ${dir} (${wordsOf(there)})`;
    if (written) table.wrong(ROW, what, remedy);
    else
      table.doubtful(
        ROW,
        what,
        `${remedy} Leave it if the adapters come into the server's folder from somewhere else.`,
      );
  }
}

/** With the rights that the umask leaves, as the engine's adapters have. */
async function fill(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'adapter_config.json'), JSON.stringify(UNFIT));
}
