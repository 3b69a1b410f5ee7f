import { access, constants, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { desktopCache, readRecipe, rootfsInfo } from '../../cluster/imageBuild.js';
import type { RunConfig } from '../../config/index.js';
import { messageOf } from '../../domain/index.js';
import { CACHE_REMEDY, whyUnwritable } from '../../files/cacheFolder.js';
import { freeAt } from '../../files/freeSpace.js';
import type { CheckRow } from '../../protocol/types.js';
import type { UpdateCost } from './cost.js';
import { gb } from './disk.js';
import { Table } from './table.js';

/** Updates that the disk must hold where no budget says how many there will be. */
const UPDATES = 50;
/** A root file system of about 350 MB, and as much again while it is built. */
const IMAGE_BYTES = 1e9;

/** Room for records and for the desktop image; the folders of tasks and, where it is mounted here, of adapters. */
export async function checkStorage(c: RunConfig, base: string, cost: UpdateCost | undefined): Promise<CheckRow[]> {
  const table = new Table('');
  await checkRecords(resolve(base, c.store.dir), c, cost, table);
  await checkImage(c, table);
  if (c.tasks.suite === 'folder' && c.tasks.dir) await checkTaskFolder(c.tasks.dir, table);
  const { vlm } = c.policy;
  if (vlm?.adapters) await checkAdapterFolder(vlm.adapters, vlm.endpoints, table);
  return table.rows;
}

async function checkRecords(dir: string, c: RunConfig, cost: UpdateCost | undefined, table: Table): Promise<void> {
  const unwritable = await whyUnwritable(dir);
  if (unwritable !== undefined) {
    table.wrong(
      'disk for records',
      `${dir} cannot be written: ${unwritable}`,
      'Set store.dir to a folder that you can write to.',
    );
    return;
  }
  const free = await freeAt(dir);
  if (!cost) {
    table.check(
      'disk for records',
      free > 1e9,
      { ok: `${gb(free)} free`, not: `${gb(free)} free` },
      'Free some, or set store.dir.',
    );
    return;
  }
  const { rollouts, updates } = c.budget,
    needed =
      rollouts === undefined
        ? cost.bytes.update * (updates ?? UPDATES)
        : rollouts * c.rollout.maxSteps * cost.bytes.step,
    what = `${gb(free)} free; ${rollouts === undefined ? `${updates ?? UPDATES} updates` : `${rollouts} rollouts`} take about ${gb(needed)} (an estimate)`;
  if (free >= needed) table.ok('disk for records', what);
  else table.doubtful('disk for records', what, 'Set store.dir to a larger disk, or lower the budget.');
}

async function checkImage(c: RunConfig, table: Table): Promise<void> {
  // An image with a layer of the user's own is built before the run.
  if (c.desktops.imageExtra) return;
  const built = await readRecipe(c.desktops.image).then(rootfsInfo);
  if (built || c.desktops.provider === 'docker' || c.desktops.provider === 'kubernetes') return;
  const unwritable = await whyUnwritable(desktopCache());
  if (unwritable !== undefined) {
    table.wrong('disk for the desktop image', `${desktopCache()} cannot be written: ${unwritable}`, CACHE_REMEDY);
    return;
  }
  const free = await freeAt(desktopCache());
  table.check(
    'disk for the desktop image',
    free >= IMAGE_BYTES,
    { ok: `${gb(free)} free`, not: `${gb(free)} free, and about ${gb(IMAGE_BYTES)} are needed while it is built` },
    `Free some on the disk of ${desktopCache()}.`,
  );
}

async function checkTaskFolder(dir: string, table: Table): Promise<void> {
  const found = await stat(dir).then((s) => (s.isDirectory() ? undefined : 'it is no folder'), messageOf);
  table.check(
    'task folder',
    found === undefined,
    { ok: dir, not: `${dir}: ${found}` },
    'Set tasks.dir to the folder of task files; `dart-studio tasks check DIR` says which of them can run here.',
  );
}

const isHere = (url: string): boolean => /^(localhost|127\.|\[::1\])/.test(new URL(url).hostname);

/** The folder as the model servers see it; this machine may not have it, unless they run here. */
async function checkAdapterFolder(dir: string, endpoints: readonly string[], table: Table): Promise<void> {
  const found = await stat(dir).catch(() => undefined),
    remedy =
      'Mount the folder where the engine writes adapters at this path on every model server, or correct policy.vlm.adapters.';
  if (!found) {
    const what = `${dir} is not on this machine`;
    if (endpoints.some(isHere)) table.wrong('folder of adapters', `${what}, where a model server runs`, remedy);
    else
      table.doubtful(
        'folder of adapters',
        `${what}; whether the model servers have it shows at the first publish`,
        remedy,
      );
    return;
  }
  const unreadable = found.isDirectory()
    ? await access(join(dir, '.'), constants.R_OK | constants.X_OK).then(() => undefined, messageOf)
    : 'it is no folder';
  table.check('folder of adapters', unreadable === undefined, { ok: dir, not: `${dir}: ${unreadable}` }, remedy);
}
