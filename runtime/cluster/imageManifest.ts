import { z } from 'zod';
import { IMAGE_NAME } from '../domain/index.js';

const provided = z.record(z.string().min(1), z.string().min(1)).default({});
const offers = {
  $schema: z.string().optional(),
  /** Applications by the name that task files use, each with the package that provides it. */
  apps: provided,
  /** Programs that task files call, each with its package. */
  programs: provided,
  shortcuts: z.array(z.string().min(1)).default([]),
  /** The least that its applications need, whatever a run file says: memory and folders in MB, processes. */
  floor: z
    .strictObject({
      diskMb: z.int().min(0).max(16_384),
      memoryMb: z.int().min(0).max(262_144),
      pids: z.int().min(0).max(65_536),
    })
    .partial()
    .default({}),
};

/** image.json of an image. */
export const Manifest = z.strictObject({
  ...offers,
  title: z.string().min(1),
  description: z.string().min(1),
  /** The image it adds to. */
  extends: z.string().regex(IMAGE_NAME).optional(),
  /** A browser on its whole screen is open all the time, also from one lease to the next (providers/keepBrowser.ts). */
  keepsBrowser: z.boolean().default(false),
});
export type Manifest = z.infer<typeof Manifest>;

/** image.json of a layer of the user's own. */
export const ExtraManifest = z.strictObject(offers);
export type ExtraManifest = z.infer<typeof ExtraManifest>;

/** Names of packages, one a line; empty lines and `#` comments are left out. */
export function parsePackages(text: string): string[] {
  return [
    ...new Set(
      text
        .split('\n')
        .map((l) => l.replace(/#.*/, '').trim())
        .filter((l) => l !== ''),
    ),
  ].sort();
}
