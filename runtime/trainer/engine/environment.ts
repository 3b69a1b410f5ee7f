// The engine's Python environment: made once for each set of pinned packages, found by later runs.
import { createHash } from 'node:crypto';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { StudioError } from '../../domain/index.js';

/** Python versions the pinned packages exist for. */
export const PYTHON_VERSIONS = ['3.13', '3.12', '3.11', '3.14'];
/** What the packages and their downloads take while installing, in bytes: on Linux, PyPI's torch brings CUDA along. */
const NEEDED_BYTES = 10e9;

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
  /** Parent of all environments. Default: ~/.cache/dart-studio/engine. */
  readonly cache?: string;
  /** Interpreters to try, in this order. Default: $DART_STUDIO_PYTHON, then python3.13 ... python3. */
  readonly pythons?: readonly string[];
  /** Progress, a line at a time. */
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * The environment for these requirements; makes it where it does not exist (a few minutes and about 5 GB).
 * An installation that was cut off is begun anew. Throws StudioError: no usable Python, no space, no network, busy.
 */
export async function ensureEngineEnvironment(options: EnvironmentOptions): Promise<EngineEnvironment> {
  const file = join(options.source, 'requirements.txt'),
    { python, folder, cache } = await placeOf(options),
    found = { folder, python: join(folder, ...interpreterPath()) };
  if (await isReady(folder, options.requirements)) return { ...found, installed: false };
  await mkdir(cache, { recursive: true });
  const unlock = await lock(`${folder}.lock`);
  try {
    if (await isReady(folder, options.requirements)) return { ...found, installed: false };
    if (!(await isReady(folder))) {
      await checkSpace(cache);
      await rm(folder, { recursive: true, force: true });
      await run(python.command, ['-m', 'venv', folder], options);
      await install(found.python, file, options);
      await writeFile(join(folder, 'ready.json'), JSON.stringify({ python: python.version }));
    }
    for (const more of options.requirements ?? []) {
      await install(found.python, more, options);
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
}
/** What a start would find. Throws StudioError where no Python is usable. */
export async function environmentState(
  options: Pick<EnvironmentOptions, 'source' | 'cache' | 'pythons'>,
): Promise<EnvironmentState> {
  const { python, folder, cache } = await placeOf(options),
    ready = await isReady(folder);
  return { version: python.version, folder, ready, needed: ready ? 0 : NEEDED_BYTES, free: await freeAt(cache) };
}

/** Where the environment of these requirements is, or will be. */
async function placeOf(options: EnvironmentOptions): Promise<{ python: Python; folder: string; cache: string }> {
  const text = await readFile(join(options.source, 'requirements.txt'), 'utf8'),
    python = await findPython(options),
    cache = options.cache ?? join(homedir(), '.cache', 'dart-studio', 'engine');
  const hash = createHash('sha256')
    .update(JSON.stringify([text, python.version, process.platform, process.arch]))
    .digest('hex')
    .slice(0, 16);
  return { python, folder: join(cache, hash), cache };
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

function install(python: string, requirements: string, options: EnvironmentOptions): Promise<void> {
  const pip = ['-m', 'pip', 'install', '--no-input', '--disable-pip-version-check', '--progress-bar', 'off'];
  return run(python, [...pip, '-r', requirements], options);
}

const interpreterPath = (): string[] => (process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python']);

interface Python {
  readonly command: string;
  readonly version: string;
}

/** The first interpreter of a version that works and can make environments (Debian keeps that part in python3-venv). */
async function findPython(options: EnvironmentOptions): Promise<Python> {
  const named = process.env['DART_STUDIO_PYTHON'];
  const candidates = options.pythons ?? [
    ...(named ? [named] : []),
    ...PYTHON_VERSIONS.map((version) => `python${version}`),
    'python3',
    'python',
  ];
  const probe = 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])';
  const seen: string[] = [];
  for (const command of candidates) {
    const version = await output(command, ['-c', probe]);
    if (version !== undefined && PYTHON_VERSIONS.includes(version)) return { command, version };
    seen.push(`${command}: ${version ?? 'not there, or without venv'}`);
  }
  throw new StudioError(
    'engine.unavailable',
    'No Python that the engine can use was found.',
    'Install Python 3.11 to 3.14 with venv (Debian, Ubuntu: apt install python3 python3-venv), or name one in DART_STUDIO_PYTHON.',
    { details: { tried: seen } },
  );
}

function output(command: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    child.stdout.on('data', (data: Buffer) => (text += data.toString()));
    child.on('error', () => resolve(undefined));
    child.on('close', (code) => resolve(code === 0 ? text.trim() : undefined));
  });
}

/** Free bytes where a folder is, or will be. */
async function freeAt(folder: string): Promise<number> {
  for (let at = folder; ; at = dirname(at)) {
    const s = await statfs(at).catch(() => undefined);
    if (s) return s.bavail * s.bsize;
    if (dirname(at) === at) return 0;
  }
}

async function checkSpace(folder: string): Promise<void> {
  const free = await freeAt(folder);
  if (free >= NEEDED_BYTES) return;
  throw new StudioError(
    'engine.unavailable',
    `The engine's packages need ${NEEDED_BYTES / 1e9} GB while they are installed; ${(free / 1e9).toFixed(1)} GB are free.`,
    `Free some space beside ${folder}.`,
  );
}

/** One installation at a time; a lock whose process is gone does not count. */
async function lock(file: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      const handle = await open(file, 'wx');
      await handle.writeFile(String(process.pid));
      await handle.close();
      return () => rm(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const owner = Number(await readFile(file, 'utf8').catch(() => '0'));
    if (owner > 0 && isAlive(owner)) {
      throw new StudioError(
        'engine.unavailable',
        `Process ${owner} is installing the engine's packages.`,
        'Wait until it is done, then run the command again.',
      );
    }
    await rm(file, { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Runs one step of the installation; the last lines go into the error. */
function run(command: string, args: readonly string[], options: EnvironmentOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(options.signal ? { signal: options.signal } : {}),
    });
    const last: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        last.push(line);
        if (last.length > 20) last.shift();
        options.onLine?.(line);
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) return resolve();
      reject(
        new StudioError(
          'engine.unavailable',
          `The engine's packages could not be installed (${args.slice(0, 3).join(' ')} ended with ${code}).`,
          'Check the network or the package index (PIP_INDEX_URL), then run the command again: it begins anew.',
          { details: { output: last.join('\n') } },
        ),
      );
    });
  });
}
