// `npm run fuzz -- --minutes M --seed S --json FILE`: bundles test/fuzz/main.ts and runs it (test/fuzz/README.md).
import { spawn } from 'node:child_process';
import { cp } from 'node:fs/promises';
import { build } from 'esbuild';

await build({
  entryPoints: ['test/fuzz/main.ts'],
  outfile: 'dist/bench/fuzz.mjs',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  sourcemap: true,
  external: ['onnxruntime-node', 'cpu-features', 'esbuild', 'bufferutil', 'utf-8-validate', '*.node'],
  logLevel: 'warning',
  banner: {
    js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);",
  },
});
// SQLite is found beside the program; recipes of desktop images in the folder above it.
await cp('node_modules/sql.js/dist/sql-wasm.wasm', 'dist/bench/sql-wasm.wasm');
const child = spawn(process.execPath, ['--enable-source-maps', 'dist/bench/fuzz.mjs', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
