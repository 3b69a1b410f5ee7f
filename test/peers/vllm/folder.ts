import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkSharedFolder, type AskToLoad } from '../../../runtime/service/runChecks/adapterFolder.js';
import { ask } from '../../../runtime/service/runChecks/ask.js';
import { Table } from '../../../runtime/service/runChecks/table.js';

/** What `doctor --run` says of a folder that the server has, and of one that it does not have. */
export interface FolderFigures {
  readonly seen: string;
  readonly unseen: string;
  readonly ok: boolean;
}

/** Asks a server that has the same files as this process; as if in a container without them where paths are changed. */
export async function folderStage(url: string, work: string): Promise<FolderFigures> {
  const dir = join(work, 'shared');
  mkdirSync(dir, { recursive: true });
  const told = async (there: (folder: string) => string): Promise<Table['rows'][number]> => {
    const table = new Table(''),
      load: AskToLoad = (folder) =>
        ask({
          url: `${url}/v1/load_lora_adapter`,
          apiKey: undefined,
          body: { lora_name: 'doctor', lora_path: there(folder) },
        });
    await checkSharedFolder({ dir, written: true }, load, table);
    return table.rows[0]!;
  };
  const seen = await told((folder) => folder),
    unseen = await told((folder) => join('/nowhere', folder));
  const words = ({ detail }: Table['rows'][number]): string => detail.replaceAll(dir, 'FOLDER');
  return { seen: words(seen), unseen: words(unseen), ok: seen.ok && !unseen.ok };
}
