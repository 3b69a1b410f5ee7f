// Bundles the runtime (ESM, one process entry) and copies what it loads at run time. Types are checked apart, by `npm run typecheck`.
import { build } from 'esbuild';
import { cp, mkdir, rm } from 'node:fs/promises';

const banner = "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);";
await mkdir('dist', { recursive: true });
await build({
  entryPoints: { runtime: 'runtime/main.ts' }, outdir: 'dist', bundle: true, platform: 'node', target: 'node20', format: 'esm',
  sourcemap: true, external: ['onnxruntime-node', 'cpu-features', '*.node'], banner: { js: banner }, logLevel: 'warning', legalComments: 'none',
});
await rm('dist/image', { recursive: true, force: true });
await cp('runtime/cluster/image', 'dist/image', { recursive: true });
await cp('node_modules/sql.js/dist/sql-wasm.wasm', 'dist/sql-wasm.wasm');
