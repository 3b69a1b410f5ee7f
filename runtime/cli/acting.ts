import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { RunFile } from '../config/index.js';
import { StudioError } from '../domain/index.js';
import { isMiniwob } from '../tasks/index.js';
import { countOption, numberOption, sizeOption, textOption, type Options } from './options.js';

/** The command line's options for tasks, desktops and sampling, over a policy's own run file. */
export async function actingOverrides(o: Options): Promise<RunFile> {
  const tasks = textOption(o, 'tasks'),
    families = textOption(o, 'families')?.split(','),
    count = countOption(o, 'desktops'),
    image = textOption(o, 'image'),
    extra = textOption(o, 'imageExtra'),
    screen = sizeOption(o, 'screen'),
    provider = o['provider'] as 'auto' | undefined,
    network = o['network'] as 'none' | undefined,
    temperature = numberOption(o, 'temperature', 0),
    maxSteps = countOption(o, 'maxSteps'),
    seed = countOption(o, 'seed', 0);
  // Without an override its section must be absent: an empty one would hide a section of the wrong type in the file.
  return {
    ...(seed === undefined ? {} : { seed }),
    ...(tasks === undefined && families === undefined ? {} : { tasks: { ...(await sourceOf(tasks)), families } }),
    ...(provider || count || image || extra !== undefined || screen || network
      ? { desktops: { provider, count, image, screen, network, ...layerOf(image, extra) } }
      : {}),
    ...(temperature === undefined ? {} : { policy: { temperature } }),
    ...(maxSteps === undefined ? {} : { rollout: { maxSteps } }),
  };
}
/** Another image has no layer unless one is named with it; an empty name is none. */
const layerOf = (image: string | undefined, extra: string | undefined): { imageExtra?: string } =>
  extra !== undefined
    ? { imageExtra: extra === '' ? '' : resolve(extra) }
    : image !== undefined
      ? { imageExtra: '' }
      : {};
async function sourceOf(tasks: string | undefined): Promise<NonNullable<RunFile['tasks']>> {
  if (tasks === undefined) return {};
  if (tasks === 'desk') return { suite: 'desk' };
  if (existsSync(tasks)) return { suite: (await isMiniwob(tasks)) ? 'miniwob' : 'folder', dir: resolve(tasks) };
  throw new StudioError(
    'config.invalid',
    `--tasks ${tasks}: there is no such folder, and no suite of that name.`,
    'Give a folder of OSWorld task files, a copy of MiniWoB++, or desk.',
  );
}
