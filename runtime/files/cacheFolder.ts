import { access, constants } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { errorCode, messageOf } from '../domain/index.js';

/** Folder of files that can be made again: `${DART_STUDIO_CACHE || XDG_CACHE_HOME || ~/.cache}/dart-studio/NAME`. */
export const cacheFolder = (name: string, env: NodeJS.ProcessEnv = process.env): string =>
  join(env['DART_STUDIO_CACHE'] || env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'dart-studio', name);
/** Earlier folder of some of these files, from before DART_STUDIO_CACHE and XDG_CACHE_HOME were read. */
export const earlierCacheFolder = (name: string): string => join(homedir(), '.cache', 'dart-studio', name);
export const CACHE_REMEDY = 'Set DART_STUDIO_CACHE to a folder that you can write to.';

/** Why nothing can be written where a folder is, or will be; undefined where it can. */
export async function whyUnwritable(folder: string): Promise<string | undefined> {
  for (let at = folder; ; at = dirname(at))
    try {
      await access(at, constants.W_OK | constants.X_OK);
      return undefined;
    } catch (e) {
      if (errorCode(e) !== 'ENOENT' || dirname(at) === at) return messageOf(e);
    }
}
