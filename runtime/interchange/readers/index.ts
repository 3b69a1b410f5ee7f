import { basename, dirname, join } from 'node:path';
import { trajectoryFileFormat } from '../../domain/index.js';
import { readSlice, type ImportFolder } from '../folder.js';
import { Unusable, problemOf } from '../types.js';
import type { Found, ImportFormat } from '../types.js';
import { readAgentnet } from './agentnet.js';
import { readDart } from './dart.js';
import { readOsworld } from './osworld.js';
import type { ReadContext, Unit } from './read.js';
import { readTraj } from './traj.js';
import { readUiTars } from './uiTars.js';

const readers: Readonly<Record<ImportFormat, (c: ReadContext, u: Unit) => AsyncGenerator<Found, void, undefined>>> = {
  osworld: readOsworld,
  agentnet: readAgentnet,
  dart: readDart,
  'ui-tars': readUiTars,
  traj: readTraj,
};

/** Everything of the wanted format(s) below the folder, in a fixed order, one at a time. */
export async function* readAll(
  c: ReadContext,
  format: ImportFormat | 'auto',
  signal?: AbortSignal,
): AsyncGenerator<Found, void, undefined> {
  for await (const u of units(c, format))
    for await (const found of 'problem' in u ? [u] : readers[u.format](c, u)) {
      if (signal?.aborted) return;
      yield found;
    }
}

type FoundUnit = Unit | Extract<Found, { problem: unknown }>;
async function* units(
  { folder }: ReadContext,
  format: ImportFormat | 'auto',
): AsyncGenerator<FoundUnit, void, undefined> {
  const wants = (f: ImportFormat): boolean => format === 'auto' || format === f;
  if (folder.only !== undefined) {
    const found = await kindOf(folder.only),
      u = { dir: dirname(folder.only), path: folder.only };
    if (format !== 'auto') yield { ...u, format };
    else if (found) yield { ...u, format: found };
    return;
  }
  for await (const { dir, files } of folder.walk((n) => /\.(?:jsonl|json)$/i.test(n))) {
    // A folder with one of these names is one rollout; other JSON in it belongs to it.
    const whole = wholeFolders.find((w) => files.includes(w.name) && wants(w.format));
    for (const name of whole ? [whole.name] : files) {
      const u = await unitOf(folder, dir, name, whole?.format);
      if (u && ('problem' in u || (wants(u.format) && (whole || !wholeFolders.some((w) => w.format === u.format)))))
        yield u;
    }
  }
}
const wholeFolders: readonly { readonly name: string; readonly format: ImportFormat }[] = [
  { name: 'traj.jsonl', format: 'osworld' },
  { name: 'final_messages.json', format: 'dart' },
];

/** A file that names trajectories, once its links are followed; undefined when it is none. */
async function unitOf(
  folder: ImportFolder,
  dir: string,
  name: string,
  known: ImportFormat | undefined,
): Promise<FoundUnit | undefined> {
  try {
    const path = await folder.file(dir, name),
      format = known ?? (await kindOf(path));
    return format && { format, dir, path };
  } catch (e) {
    if (!(e instanceof Unusable)) throw e;
    return { problem: problemOf(e, folder.name(join(dir, name))) };
  }
}

/** The format of a file, by its name, else by its beginning. */
async function kindOf(path: string): Promise<ImportFormat | undefined> {
  const name = basename(path);
  if (name === 'traj.jsonl') return 'osworld';
  if (name === 'final_messages.json') return 'dart';
  if (/\.traj\.jsonl$/i.test(name)) return 'traj';
  const head = (await readSlice(path, 0, 1 << 18).catch(() => Buffer.alloc(0))).toString('utf8');
  if (/\.jsonl$/i.test(name))
    return head.includes(trajectoryFileFormat) ? 'traj' : /"traj"\s*:/.test(head) ? 'agentnet' : undefined;
  return /"conversations"\s*:/.test(head) ? 'ui-tars' : undefined;
}
