import type { DiskRoom } from '../data/store/room.js';

/** Says when episodes wait for room on the disk of a folder, and when they go on. Returns what ends it. */
export const sayRoom = (room: DiskRoom, dir: string, say: ((text: string) => void) | undefined): (() => void) =>
  room.onChange((full) =>
    say?.(
      full
        ? `The disk of ${dir} is full. Nothing is lost: episodes wait and continue automatically when space is available.`
        : 'There is space on the disk again: episodes continue.',
    ),
  );
