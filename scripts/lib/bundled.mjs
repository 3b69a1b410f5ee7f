// Programs of the tests that run against the bundle in dist/: bundled into dist/chaos, and run with the command line's arguments.
import { spawn } from 'node:child_process';
import { ensureBuilt } from './ensure.mjs';

const BANNER =
  "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);";

/** Bundles `entryPoints` and runs the one called `main`; ends as it ends. */
export async function runBundled(entryPoints, main) {
  await ensureBuilt();
  const { build } = await import('esbuild');
  await build({
    entryPoints,
    outdir: 'dist/chaos',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: true,
    external: ['onnxruntime-node', 'cpu-features', '*.node', 'bufferutil', 'utf-8-validate'],
    logLevel: 'warning',
    banner: { js: BANNER },
  });
  const child = spawn(process.execPath, ['--enable-source-maps', `dist/chaos/${main}.mjs`, ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
}
