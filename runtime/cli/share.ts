import { resolve } from 'node:path';
import { StudioError } from '../domain/index.js';
import { runFolder } from '../run/runFolders.js';
import { writeFilePage, writeRunPage, writeTrajectoryPage } from '../service/sharedPages.js';
import { megabytes } from '../share/words.js';
import type { Options } from './options.js';
import { print, printJson } from './output.js';

/** `export RUN FILE.html --format html [--rollout ID]`; RUN may be a `.traj.jsonl` file. */
export async function exportPage(run: string, to: string, o: Options): Promise<number> {
  if (!/\.html$/i.test(to))
    throw new StudioError(
      'config.invalid',
      `${to}: the name of a page must end in .html`,
      'For example: dart-studio export RUN run.html --format html',
    );
  const { rollout } = o,
    shared = run.endsWith('.jsonl')
      ? await writeFilePage(resolve(run), resolve(to))
      : typeof rollout === 'string'
        ? await writeTrajectoryPage(runFolder(String(o['runs'] ?? 'runs'), run), rollout, resolve(to))
        : await writeRunPage(runFolder(String(o['runs'] ?? 'runs'), run), resolve(to));
  if (o['json'] === true) printJson(shared);
  else
    print(
      `${[
        `${to} written, ${megabytes(shared.bytes)}; it opens in any browser, without a network.`,
        ...(shared.scale > 1 ? [`Its screens are ${shared.scale} times smaller in width and height.`] : []),
        ...(shared.without > 0 ? [`${shared.without} screens are not in it.`] : []),
      ].join('\n')}\n`,
    );
  return 0;
}
