import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file of runtime/cluster/image: beside the bundle (dist/image) or, run from source, in the source tree. */
export function imageAsset(path: string): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const bundled = join(here, 'image', path);
  return existsSync(bundled) ? bundled : join(here, '..', 'image', path);
}
