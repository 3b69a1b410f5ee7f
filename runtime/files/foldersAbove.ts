import { dirname } from 'node:path';

/** A folder and all those above it, the nearest first: where a folder that is not there yet will be. Pure. */
export function withFoldersAbove(folder: string): readonly string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...withFoldersAbove(above)];
}
