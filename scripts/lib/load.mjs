import { build } from 'esbuild';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A module from its sources: the bundle in dist/ may be older. Packages are loaded as they are. */
export async function load(file) {
  const dir = join(root, '.cache/generate'),
    out = join(dir, `${file.replace(/\W/g, '-')}.${process.pid}.mjs`);
  await mkdir(dir, { recursive: true });
  await build({
    entryPoints: [join(root, file)],
    outfile: out,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'error',
  });
  try {
    return await import(pathToFileURL(out).href);
  } finally {
    await rm(out, { force: true });
  }
}
