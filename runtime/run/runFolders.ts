import { readdir } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { StudioError, type RunId } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { parseStoredConfig, type RunConfig, type RunFile } from '../config/index.js';
import { readMeta, readMetaText } from '../data/store/runStore.js';

/** A run by id or path: the path itself when it holds a run.json, else `<dir>/<name>`. */
export function runFolder(dir: string, name: string): string {
  const tries = [isAbsolute(name) ? name : resolve(name), resolve(dir, name)];
  const found = tries.find((d) => existsSync(join(d, 'run.json')));
  if (!found)
    throw new StudioError(
      'store.io',
      `There is no run '${name}' (looked in ${[...new Set(tries)].join(' and ')}).`,
      '`dart-studio runs list` shows the runs there are.',
    );
  return found;
}

/** The options that an existing run was started with. Rejects with `store.newer` for one of a newer version. */
export async function startedWith(dir: string, over: RunFile = {}): Promise<{ config: RunConfig; run: RunId }> {
  const meta = await readMeta(dir);
  return { config: parseStoredConfig(meta.config, over), run: meta.id };
}

/** `2026-11-20-1012-quickstart-s1`, made unique with a suffix when it is taken. */
export function newRunId(dir: string, name: string, seed: number, now: Date): string {
  const p = (n: number): string => String(n).padStart(2, '0');
  const base = `${now.getFullYear()}-${p(now.getMonth() + 1)}-${p(now.getDate())}-${p(now.getHours())}${p(now.getMinutes())}-${name}-s${seed}`;
  for (let i = 1; ; i++) {
    const id = i === 1 ? base : `${base}-${i}`;
    if (!existsSync(join(dir, id))) return id;
  }
}

/** The creation time in a run's description; undefined when it is damaged. */
function createdOf(text: string): { readonly createdAt?: number } | undefined {
  try {
    return JSON.parse(text) as { createdAt?: number };
  } catch {
    return undefined;
  }
}

/** The text of a run's description, run.json. */
export const runText = readMetaText;

/**
 * Folders under `dir` that hold a run, newest first; with `damaged` also those whose description cannot be read. Where
 * `dir` cannot be read there are none; with `strict` that rejects.
 */
export async function listRunFolders(
  dir: string,
  o: { readonly damaged?: boolean; readonly strict?: boolean } = {},
): Promise<string[]> {
  const names = await readdir(dir).catch((e: unknown): string[] => {
    if (o.strict) throw e;
    return [];
  });
  const found: { dir: string; at: number }[] = [];
  for (const n of names) {
    const text = await orUndefined(readMetaText(join(dir, n)), 'a folder without it is no run');
    const meta = text === undefined ? undefined : (createdOf(text) ?? (o.damaged ? {} : undefined));
    if (meta) found.push({ dir: join(dir, n), at: meta.createdAt ?? 0 });
  }
  return found.sort((a, b) => b.at - a.at).map((f) => f.dir);
}
