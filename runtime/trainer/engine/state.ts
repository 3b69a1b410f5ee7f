import { constants, existsSync } from 'node:fs';
import { cp, link, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StudioError, errorCode, messageOf } from '../../domain/index.js';
import { folderInside, linkBetween, linkRefused } from '../../files/folderParts.js';
import { ForeignFileError, copyForeign } from '../../files/foreignFile.js';

/** The folder where an engine keeps weights (`--state`), as dart_engine/checkpoints.py writes it. */

const URI = /^tinker:\/\/([^/]+)\/(weights|sampler_weights)\/([\w.@:+-]{1,200})$/;

interface Named {
  readonly model: string;
  readonly kind: string;
  readonly name: string;
}
/** `tinker://MODEL/weights/NAME`; undefined for what is none. */
function named(uri: string): Named | undefined {
  const [, model, kind, name] = URI.exec(uri) ?? [];
  return model === undefined || kind === undefined || name === undefined || /^\.+$/.test(name)
    ? undefined
    : { model, kind, name };
}
/** Python's `quote(model, safe="")`. */
const modelFolder = (state: string, model: string): string =>
  join(
    state,
    'models',
    encodeURIComponent(model).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`),
  );

/** The folder of these weights; undefined for a path that is no URI of an engine. */
export function weightsFolder(state: string, uri: string): string | undefined {
  const n = named(uri);
  return n && join(modelFolder(state, n.model), n.kind, n.name);
}
export const hasWeights = (state: string, uri: string): boolean => {
  const dir = weightsFolder(state, uri);
  return dir !== undefined && existsSync(join(dir, 'engine.json'));
};

/**
 * Rejects with `store.damaged` where there is anything in the folder but folders and regular files, or a folder on the
 * way to it, from `inside` on, is a link. The engine's program writes and reads what it finds there by its name.
 */
export async function checkPlain(inside: string, folder: string): Promise<void> {
  try {
    const behind = await linkBetween(inside, folder);
    if (behind !== undefined) throw linkRefused(behind);
  } catch (e) {
    if (errorCode(e) === 'ENOENT') return;
    throw e;
  }
  const todo = [folder];
  for (let at = todo.pop(); at !== undefined; at = todo.pop())
    for (const e of await readdir(at, { withFileTypes: true })) {
      if (e.isDirectory()) todo.push(join(at, e.name));
      else if (!e.isFile()) throw linkRefused(join(at, e.name));
    }
}

/** Most bytes of `model.json`, which says how a model was created. */
const MOST_META = 1 << 20;
/**
 * Weights of another engine's folder in this one's, under the same URI. Where both are on one disk nothing is copied:
 * engines never write into a file that is there. Weights that are here already stay.
 */
export async function adoptWeights(from: string, to: string, uri: string): Promise<void> {
  const n = named(uri);
  if (!n || hasWeights(to, uri)) return;
  const source = weightsFolder(from, uri)!,
    target = weightsFolder(to, uri)!,
    fresh = join(dirname(target), `.new-${n.name}`);
  if (!hasWeights(from, uri))
    throw new StudioError(
      'trainer.invalid',
      `${source} does not hold the weights ${uri}.`,
      'Choose a later checkpoint of that run: weights of earlier ones are deleted (store.keepCheckpoints).',
    );
  // Both are folders of runs, which somebody else may have made.
  const behind = await linkBetween(dirname(from), source);
  if (behind !== undefined) throw linkRefused(behind);
  await folderInside(dirname(to), dirname(target));
  await rm(fresh, { recursive: true, force: true });
  await copyTree(source, fresh);
  await rename(fresh, target);
  const meta = join(modelFolder(to, n.model), 'model.json'),
    theirs = join(modelFolder(from, n.model), 'model.json');
  if (!existsSync(meta)) await copyForeign(theirs, meta, MOST_META, { inside: dirname(from) }).catch(unusable(theirs));
}
const unusable =
  (file: string) =>
  (e: unknown): never => {
    throw new StudioError(
      'trainer.invalid',
      `${file} ${e instanceof ForeignFileError ? e.message : `cannot be taken over (${errorCode(e) ?? messageOf(e)})`}.`,
      'Start from another run, or restore that one from a copy.',
      { cause: e },
    );
  };
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isFile()) await linked(source, target);
  }
}
async function linked(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (e) {
    if (!['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'EACCES'].includes(errorCode(e) ?? '')) throw e;
    await cp(from, to, { mode: constants.COPYFILE_FICLONE });
  }
}
