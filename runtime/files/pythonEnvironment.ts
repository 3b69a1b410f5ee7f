// Python environments that this runtime makes for itself: which interpreter, where, one installation at a time.
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StudioError, messageOf, type ErrorKind } from '../domain/index.js';
import { CACHE_REMEDY } from './cacheFolder.js';
import { fileLock } from './fileLock.js';
import { freeAt } from './freeSpace.js';
import { logLines } from './logLines.js';

/** Owner of the environment, for messages: `who` "the engine", `whose` "the engine's". */
export interface EnvironmentOwner {
  readonly kind: ErrorKind;
  readonly who: string;
  readonly whose: string;
  /** Python versions its packages exist for, in order of preference. */
  readonly versions: readonly string[];
  /** Bytes that the packages and their downloads take while installing. */
  readonly bytes: number;
}
export interface StepOptions {
  /** Progress, a line at a time. */
  readonly onLine?: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface Python {
  readonly command: string;
  readonly version: string;
}

/** The interpreter of an environment, below its folder. */
export const interpreterPath = (): string[] =>
  process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python'];

/**
 * The first interpreter of a version that works and can make environments (Debian keeps that part in python3-venv).
 * Default candidates: $DART_STUDIO_PYTHON, then python3.13 ... python3. Throws StudioError.
 */
export async function findPython(owner: EnvironmentOwner, pythons?: readonly string[]): Promise<Python> {
  const named = process.env['DART_STUDIO_PYTHON'];
  const candidates = pythons ?? [
    ...(named ? [named] : []),
    ...owner.versions.map((version) => `python${version}`),
    'python3',
    'python',
  ];
  const probe = 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])';
  const seen: string[] = [];
  for (const command of candidates) {
    const version = await output(command, ['-c', probe]);
    if (version !== undefined && owner.versions.includes(version)) return { command, version };
    seen.push(`${command}: ${version ?? 'not there, or without venv'}`);
  }
  const sorted = [...owner.versions].sort((a, b) => Number(a.split('.')[1]) - Number(b.split('.')[1]));
  throw new StudioError(
    owner.kind,
    `No Python that ${owner.who} can use was found.`,
    `Install Python ${sorted[0]} to ${sorted.at(-1)} with venv (Debian, Ubuntu: apt install python3 python3-venv), or name one in DART_STUDIO_PYTHON.`,
    { details: { tried: seen } },
  );
}

/** The output of a program, trimmed; undefined where it cannot be run or fails. */
export function output(command: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    let text = '';
    child.stdout.on('data', (data: Buffer) => (text += data.toString()));
    child.on('error', () => resolve(undefined));
    child.on('close', (code) => resolve(code === 0 ? text.trim() : undefined));
  });
}

export async function checkSpace(owner: EnvironmentOwner, folder: string): Promise<void> {
  const free = await freeAt(folder);
  if (free >= owner.bytes) return;
  throw new StudioError(
    owner.kind,
    `${capital(owner.whose)} packages need ${owner.bytes / 1e9} GB while they are installed; ${(free / 1e9).toFixed(1)} GB are free.`,
    `Free some space beside ${folder}.`,
  );
}
const capital = (s: string): string => s.charAt(0).toUpperCase() + s.slice(1);

/** One installation at a time: waits for another one. Makes the folder of the lock. */
export async function installLock(
  owner: EnvironmentOwner,
  file: string,
  { onLine, signal }: StepOptions,
): Promise<() => Promise<void>> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true }).catch((e: unknown) => {
    throw new StudioError(owner.kind, `The cache folder ${folder} cannot be created: ${messageOf(e)}`, CACHE_REMEDY, {
      cause: e,
    });
  });
  return fileLock(file, {
    kind: owner.kind,
    signal,
    onWait: () => onLine?.(`Another process is installing ${owner.whose} packages; waiting for it.`),
  });
}

const PIP = ['-m', 'pip', 'install', '--no-input', '--disable-pip-version-check', '--progress-bar', 'off'];
/** Installs into the environment of this interpreter; `what` is pip's own. */
export const pipInstall = (
  owner: EnvironmentOwner,
  python: string,
  what: readonly string[],
  o: StepOptions,
): Promise<void> => runStep(owner, python, [...PIP, ...what], o);

/** Runs one step of the installation; the last lines go into the error. */
export function runStep(
  owner: EnvironmentOwner,
  command: string,
  args: readonly string[],
  o: StepOptions,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(o.signal ? { signal: o.signal } : {}),
    });
    const last: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      logLines(stream, (line) => {
        last.push(line);
        if (last.length > 20) last.shift();
        o.onLine?.(line);
      });
    }
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) return resolve();
      reject(
        new StudioError(
          owner.kind,
          `${capital(owner.whose)} packages could not be installed (${args.slice(0, 3).join(' ')} ended with ${code}).`,
          'Check the network or the package index (PIP_INDEX_URL), then run the command again: it starts over.',
          { details: { output: last.join('\n') } },
        ),
      );
    });
  });
}
