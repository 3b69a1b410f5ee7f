// The engine's Python environment: made once for each set of pinned packages, found by later runs.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder, earlierCacheFolder, whyUnwritable } from '../../files/cacheFolder.js';
import { freeAt } from '../../files/freeSpace.js';
import {
  checkSpace,
  findPython,
  installLock,
  interpreterPath,
  pipInstall,
  runStep,
  type EnvironmentOwner,
  type Python,
} from '../../files/pythonEnvironment.js';

const ENGINE: EnvironmentOwner = {
  kind: 'engine.unavailable',
  who: 'the engine',
  whose: "the engine's",
  versions: ['3.13', '3.12', '3.11', '3.14'],
  // PyPI's torch for Linux includes CUDA.
  bytes: 10e9,
};

export interface EngineEnvironment {
  /** The environment's interpreter. */
  readonly python: string;
  readonly folder: string;
  /** True when this call installed it. */
  readonly installed: boolean;
}

export interface EnvironmentOptions {
  /** The folder with requirements.txt and the package dart_engine. */
  readonly source: string;
  /** Requirement files, absolute, whose packages are added to the same environment (tests). */
  readonly requirements?: readonly string[];
  /** Parent of all environments; a cache folder by default. */
  readonly cache?: string;
  /** Interpreters to try, in this order. Default: $DART_STUDIO_PYTHON, then python3.13 ... python3. */
  readonly pythons?: readonly string[];
  /** Progress, a line at a time. */
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * The environment for these requirements; makes it where it does not exist (a few minutes and about 5 GB).
 * An installation that was cut off is begun anew, one under way waited for. Throws StudioError: no usable Python, no space,
 * no network.
 */
export async function ensureEngineEnvironment(options: EnvironmentOptions): Promise<EngineEnvironment> {
  const file = join(options.source, 'requirements.txt'),
    { python, folder, cache } = await placeOf(options),
    found = { folder, python: join(folder, ...interpreterPath()) };
  if (await isReady(folder, options.requirements)) return { ...found, installed: false };
  const unlock = await installLock(ENGINE, `${folder}.lock`, options);
  try {
    if (await isReady(folder, options.requirements)) return { ...found, installed: false };
    if (!(await isReady(folder))) {
      await checkSpace(ENGINE, cache);
      await rm(folder, { recursive: true, force: true });
      await runStep(ENGINE, python.command, ['-m', 'venv', folder], options);
      await pipInstall(ENGINE, found.python, ['-r', file], options);
      await writeFile(join(folder, 'ready.json'), JSON.stringify({ python: python.version }));
    }
    for (const more of options.requirements ?? []) {
      await pipInstall(ENGINE, found.python, ['-r', more], options);
      await writeFile(await marker(folder, more), '');
    }
    return { ...found, installed: true };
  } finally {
    await unlock();
  }
}

export interface EnvironmentState {
  /** Version of the interpreter that is used. */
  readonly version: string;
  readonly folder: string;
  readonly ready: boolean;
  /** Bytes that an installation needs, and those that are free; 0 needed where it is done. */
  readonly needed: number;
  readonly free: number;
  /** Why it cannot be installed there. */
  readonly unwritable?: string;
}
/** The environment that a start would find. Throws StudioError where no Python is usable. */
export async function environmentState(
  options: Pick<EnvironmentOptions, 'source' | 'cache' | 'pythons'>,
): Promise<EnvironmentState> {
  const { python, folder, cache } = await placeOf(options),
    ready = await isReady(folder);
  return {
    version: python.version,
    folder,
    ready,
    needed: ready ? 0 : ENGINE.bytes,
    free: await freeAt(cache),
    ...(ready ? {} : { unwritable: await whyUnwritable(cache) }),
  };
}

/** Folder of the environment for these requirements, installed or not. */
async function placeOf(options: EnvironmentOptions): Promise<{ python: Python; folder: string; cache: string }> {
  const text = await readFile(join(options.source, 'requirements.txt'), 'utf8'),
    python = await findPython(ENGINE, options.pythons),
    cache = options.cache ?? cacheFolder('engine');
  const hash = createHash('sha256')
    .update(JSON.stringify([text, python.version, process.platform, process.arch]))
    .digest('hex')
    .slice(0, 16);
  // An environment in the earlier cache folder is used instead of being installed again.
  const before = join(earlierCacheFolder('engine'), hash),
    there = options.cache === undefined && !existsSync(join(cache, hash)) && (await isReady(before));
  return { python, folder: there ? before : join(cache, hash), cache };
}

/** Whether everything that is asked for is in the environment. */
async function isReady(folder: string, requirements: readonly string[] = []): Promise<boolean> {
  if (!existsSync(join(folder, 'ready.json'))) return false;
  const markers = await Promise.all(requirements.map((file) => marker(folder, file)));
  return markers.every((file) => existsSync(file));
}

/** The file that says these added packages are there; another content of the requirements has another one. */
async function marker(folder: string, requirements: string): Promise<string> {
  const hash = createHash('sha256')
    .update(await readFile(requirements))
    .digest('hex');
  return join(folder, `added-${hash.slice(0, 16)}`);
}
