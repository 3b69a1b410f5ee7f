import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StudioError, type ErrorKind } from '../domain/index.js';

export interface Shipped {
  /** `import.meta.url` of the module that asks. */
  readonly from: string;
  /** The folder's name beside the bundle. */
  readonly name: string;
  /** A file that it must have. */
  readonly holds: string;
  /** The folder in the source tree, from that module. */
  readonly inSources: string;
}

/**
 * A folder that comes with the runtime: beside the bundle (dist/NAME, from dist/runtime.js or dist/bench/x.mjs), or in
 * the source tree.
 * @throws StudioError `kind`, where neither has the file that it must have.
 */
export function shippedFolder({ from, name, holds, inSources }: Shipped, kind: ErrorKind, what: string): string {
  const here = dirname(fileURLToPath(from)),
    found = [join(here, name), join(here, '..', name), join(here, inSources)].find((d) => existsSync(join(d, holds)));
  if (found !== undefined) return found;
  throw new StudioError(
    kind,
    `${what} (${name}/${holds}) are not beside ${here}.`,
    'Build again with `npm run build`; the installation is incomplete.',
  );
}
