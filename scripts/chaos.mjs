// `npm run chaos -- --kills N --seed S [--json FILE]`: bundles test/chaos and runs it against the bundle in dist/.
import { ensureBuilt } from './lib/ensure.mjs';
import { spawn } from 'node:child_process';

await ensureBuilt();
const { build } = await import('esbuild');
await build({
  entryPoints: { chaos: 'test/chaos/main.ts', hook: 'test/chaos/hook.ts' },
  outdir: 'dist/chaos',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  sourcemap: true,
  external: ['onnxruntime-node', 'cpu-features', '*.node', 'bufferutil', 'utf-8-validate'],
  logLevel: 'warning',
  banner: {
    js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);",
  },
});
const child = spawn(process.execPath, ['--enable-source-maps', 'dist/chaos/chaos.mjs', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
