import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { toRunError } from '../../domain/index.js';
import { CACHE_REMEDY } from '../../files/cacheFolder.js';
import type { CheckRow } from '../../protocol/types.js';
import { environmentState } from '../../trainer/engine/environment.js';
import { engineDir } from '../../trainer/engine/server.js';
import { gb } from './disk.js';
import { Table } from './table.js';

/**
 * Checks the needs of the engine that a run starts by itself; nothing is started or fetched. `base`: folder of a
 * relative model path.
 */
export async function checkOwnEngine(model: string, base: string): Promise<CheckRow[]> {
  const table = new Table('engine of the run');
  try {
    const s = await environmentState({ source: engineDir() });
    if (s.ready) table.ok('packages', `installed in ${s.folder} (Python ${s.version})`);
    else if (s.unwritable !== undefined)
      table.wrong('packages', `not installed, and ${s.folder} cannot be written: ${s.unwritable}`, CACHE_REMEDY);
    else
      table.check(
        'packages',
        s.free >= s.needed,
        {
          ok: `the first start installs them (about 5 GB, Python ${s.version})`,
          not: `not installed, which takes ${gb(s.needed)}; ${gb(s.free)} are free`,
        },
        `Free some space beside ${s.folder}.`,
      );
  } catch (e) {
    const { message, remedy } = toRunError(e);
    table.wrong('packages', message, remedy);
  }
  checkModel(model, base, table);
  if (process.platform === 'linux' && !existsSync('/dev/nvidia0'))
    table.doubtful(
      'GPU',
      'no NVIDIA GPU was found: the engine computes on the CPU, which is for tests only',
      'Run it where there is a GPU, or give the address of an engine elsewhere in trainer.remote.url.',
    );
  return table.rows;
}

function checkModel(model: string, base: string, table: Table): void {
  const folder = resolve(base, model);
  if (existsSync(join(folder, 'config.json'))) return table.ok('model', folder);
  const hub = process.env['HF_HOME'] ?? join(homedir(), '.cache', 'huggingface'),
    cached = existsSync(join(hub, 'hub', `models--${model.replaceAll('/', '--')}`));
  if (cached) return table.ok('model', `${model} is in the Hugging Face cache`);
  table.doubtful(
    'model',
    `${model} is neither a folder here nor in the Hugging Face cache: the first start fetches it from the hub`,
    'Give the folder of a model in policy.vlm.model, or fetch it before: hf download NAME.',
  );
}
