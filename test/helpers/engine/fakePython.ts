import { build } from 'esbuild';
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** What a process is given so that its engine is the reference server, in a Python environment of its own. */
export interface FakePython {
  /** Path of the interpreter. */
  readonly python: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Makes an interpreter that plays Python for the engine (pythonMain.ts), and a home folder whose caches are this one's
 * but for the engine's environments. `dir` holds it all.
 */
export async function fakePython(dir: string): Promise<FakePython> {
  const python = join(dir, 'python3'),
    program = join(dir, 'python.mjs'),
    home = join(dir, 'home'),
    cache = join(home, '.cache', 'dart-studio');
  await build({
    entryPoints: ['test/helpers/engine/pythonMain.ts'],
    outfile: program,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url);",
    },
  });
  await writeFile(python, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$0" "$@"\n`);
  await chmod(python, 0o755);
  await mkdir(cache, { recursive: true });
  await symlink(join(homedir(), '.cache', 'dart-studio', 'desktop'), join(cache, 'desktop'));
  return { python, env: { HOME: home, DART_STUDIO_PYTHON: python } };
}

/** A folder that looks like a model's. */
export async function fakeModel(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true });
  await writeFile(join(dir, 'config.json'), '{"model_type":"tiny"}');
  return dir;
}
