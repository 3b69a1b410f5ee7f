import { constants, existsSync } from 'node:fs';
import { copyFile, cp, link, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { StudioError, errorCode } from '../../domain/index.js';

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
  await rm(fresh, { recursive: true, force: true });
  await copyTree(source, fresh);
  await rename(fresh, target);
  const meta = join(modelFolder(to, n.model), 'model.json');
  if (!existsSync(meta)) await copyFile(join(modelFolder(from, n.model), 'model.json'), meta);
}
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
