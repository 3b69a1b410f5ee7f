import { DEFAULT_IMAGE, StudioError } from '../domain/index.js';
import { imageContents } from '../service/desktopImage.js';
import { checkFolder, deskSuite, formatCheck, openAssets } from '../tasks/index.js';
import type { Options } from './options.js';

/** `tasks check DIR`: a row a task; exit code 0 when the folder could be read, 1 when a file in it is invalid. */
export async function check(dir: string, o: Options): Promise<number> {
  const assets = typeof o['assets'] === 'string' ? await openAssets(o['assets']) : undefined;
  const image = await imageContents(String(o['image'] ?? DEFAULT_IMAGE));
  const rows = await checkFolder(dir, { image, assets });
  if (rows.length === 0)
    throw new StudioError(
      'task.invalid',
      `${dir} holds no task files.`,
      'Give a folder with OSWorld task files (*.json).',
    );
  process.stdout.write((o['json'] ? JSON.stringify(rows, null, 2) : formatCheck(rows)) + '\n');
  return rows.some((r) => r.error) ? 1 : 0;
}

/** `tasks list`: the families of the built-in suite. */
export async function list(o: Options): Promise<number> {
  const families = deskSuite().families;
  if (o['json']) process.stdout.write(JSON.stringify(families, null, 2) + '\n');
  else
    for (const f of families)
      process.stdout.write(
        `${f.id.padEnd(28)} ${f.split.padEnd(8)} ${String(f.steps).padStart(2)} steps  ${f.apps.join(', ')}${f.infeasible ? '  (infeasible)' : ''}\n`,
      );
  return 0;
}
