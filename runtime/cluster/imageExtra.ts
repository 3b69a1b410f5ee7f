import { lstat, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { messageOf, StudioError } from '../domain/index.js';
import { foreignJson } from '../foreign/json.js';
import { shellQuoted } from '../foreign/shellQuoted.js';
import { readForeignText } from '../files/foreignFile.js';
import { ExtraManifest, parsePackages } from './imageManifest.js';

/**
 * A layer of the user's own upon an image (`desktops.imageExtra`). Where a desktop image is named, `NAME+/folder` is the
 * image NAME with that layer. The layer's set-up and packages run as root while it is built, so it is only built by
 * whoever asks for just that (`desktop build --image-extra`), never because a run file names it.
 */
export interface ImageParts {
  readonly name: string;
  /** Absolute path of the layer's folder. */
  readonly extra?: string | undefined;
}
export const referenceOf = ({ name, extra }: ImageParts): string => (extra === undefined ? name : `${name}+${extra}`);
/** The reference of a configuration's image; an empty `imageExtra` is none. */
export const imageOf = (c: { readonly image: string; readonly imageExtra?: string | undefined }): string =>
  referenceOf({ name: c.image, extra: c.imageExtra || undefined });
export function partsOf(reference: string): ImageParts {
  const at = reference.indexOf('+');
  return at < 0 ? { name: reference } : { name: reference.slice(0, at), extra: reference.slice(at + 1) };
}

export interface ExtraLayer {
  readonly dir: string;
  readonly manifest: ExtraManifest;
  readonly packages: readonly string[];
  /** Names of the packages in debs/. */
  readonly debs: readonly string[];
}

const PARTS = ['image.json', 'packages.txt', 'setup.sh', 'overlay', 'debs'];
/** Files that may also be in the folder. */
const WORDS = /^(README|LICEN[CS]E|NOTICE)\b/i;
/** Most bytes of image.json and of packages.txt. */
const MOST_TEXT = 1 << 16;
const MANIFEST = { bytes: MOST_TEXT, depth: 4, values: 2000 };
const MOST_DEBS = 64;
/** A trailing `-` would have apt remove it. */
const PACKAGE = /^[a-z0-9][a-z0-9.+-]*[a-z0-9.+]$/;
/** Never an option of whatever is given its name. */
const DEB = /^[A-Za-z0-9][\w.+~%-]{0,90}\.deb$/;

/** Rejects with `desktop.image`, naming the folder, when it is not a layer. */
export async function readExtra(dir: string): Promise<ExtraLayer> {
  if (/\p{Cc}/u.test(dir)) throw broken(JSON.stringify(dir), 'Its name has control characters.');
  const names = await entries(dir, '.');
  const stranger = names.find((n) => !PARTS.includes(n) && !WORDS.test(n) && !n.startsWith('.'));
  if (stranger !== undefined)
    throw broken(dir, `${JSON.stringify(stranger)} is no part of a layer: it may have ${PARTS.join(', ')}.`);
  if (!names.some((n) => PARTS.includes(n))) throw broken(dir, `It has none of ${PARTS.join(', ')}.`);
  const text = async (name: string): Promise<string | undefined> => {
    if (!names.includes(name)) return undefined;
    return readForeignText(join(dir, name), MOST_TEXT, { inside: dir }).catch((cause: unknown) => {
      throw broken(dir, `${name} cannot be read: it ${messageOf(cause)}.`, cause);
    });
  };
  const packages = parsePackages((await text('packages.txt')) ?? ''),
    odd = packages.find((p) => !PACKAGE.test(p));
  if (odd !== undefined) throw broken(dir, `packages.txt: ${JSON.stringify(odd)} is not the name of a package.`);
  const debs = names.includes('debs') ? (await entries(dir, 'debs')).filter((n) => !n.startsWith('.')).sort() : [],
    other = debs.find((n) => !DEB.test(n));
  if (other !== undefined)
    throw broken(dir, `debs/${JSON.stringify(other)} is not the file of a package (NAME_VERSION_ARCH.deb).`);
  if (debs.length > MOST_DEBS) throw broken(dir, `debs/ has more than ${MOST_DEBS} packages.`);
  const manifest = manifestOf(dir, await text('image.json'));
  for (const [what, pkg] of [...Object.entries(manifest.apps), ...Object.entries(manifest.programs)])
    if (!packages.includes(pkg) && !debs.some((d) => d.startsWith(`${pkg}_`)))
      throw broken(dir, `${what} comes from the package ${pkg}, which neither packages.txt nor debs/ has.`);
  return { dir, manifest, packages, debs };
}

/** Names in a folder of the layer, which is no link. */
export async function entries(dir: string, folder: string): Promise<string[]> {
  const path = join(dir, folder);
  try {
    if (folder !== '.' && !(await lstat(path)).isDirectory()) throw new Error('is not a folder');
    return await readdir(path);
  } catch (cause) {
    throw broken(dir, `${folder === '.' ? 'It' : folder} cannot be read: ${messageOf(cause)}.`, cause);
  }
}

function manifestOf(dir: string, text: string | undefined): ExtraManifest {
  const json = foreignJson(text ?? '{}', MANIFEST, (why, _, cause) => broken(dir, `image.json ${why}.`, cause));
  const parsed = ExtraManifest.safeParse(json);
  if (!parsed.success) throw broken(dir, `image.json: ${z.prettifyError(parsed.error)}`, parsed.error);
  return parsed.data;
}

export const broken = (dir: string, what: string, cause?: unknown): StudioError =>
  new StudioError(
    'desktop.image',
    `desktops.imageExtra: ${dir} is not a layer of an image. ${what}`,
    `Correct the folder ${basename(dir)}: runtime/cluster/README.md#image-extra says what it may have.`,
    cause === undefined ? {} : { cause },
  );

/**
 * The error for an image whose layer is not built. The layer's set-up runs as root, so a person must ask for the build.
 */
export const notBuilt = ({ name, extra = '' }: ImageParts): StudioError =>
  new StudioError(
    'desktop.image',
    `The desktop image ${name} with the layer ${extra} is not built. The layer's set-up and packages run as root while it is, so no run builds it.`,
    `Look at what the folder holds, then build it: dart-studio desktop build --image ${name} --image-extra ${shellQuoted(extra)}`,
    { details: { imageExtra: extra } },
  );
