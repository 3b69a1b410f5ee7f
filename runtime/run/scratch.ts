import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DiskRoom } from '../data/store/room.js';
import { unfinishedName } from '../data/store/unfinished.js';
import { orUndefined } from '../domain/index.js';

/**
 * A folder for what is needed as long as something runs, in the run folder that it is about: that of temporary files is
 * often small, or in memory. Model servers know its adapters by its name, which no two processes may share, in whatever
 * containers they are. What a killed process leaves there is removed when the run is opened again (unfinished.ts).
 */
export async function scratchFolder(run: string, what: string): Promise<string> {
  const inside = join(run, unfinishedName(`${what}-${randomBytes(6).toString('hex')}`)),
    made = await orUndefined(
      mkdir(inside, { mode: 0o700 }).then(() => inside),
      'a run that can only be read leaves the folder of temporary files',
    );
  return made ?? mkdtemp(join(tmpdir(), `dart-studio-${what}-`));
}

/** Says when episodes wait for room on the disk of a folder, and when they go on. Returns what ends it. */
export const sayRoom = (room: DiskRoom, dir: string, say: ((text: string) => void) | undefined): (() => void) =>
  room.onChange((full) =>
    say?.(
      full
        ? `The disk of ${dir} is full. Nothing is lost: episodes wait and continue automatically when space is available.`
        : 'There is space on the disk again: episodes continue.',
    ),
  );
