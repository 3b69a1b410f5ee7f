// `npm run bench:NAME [-- --quick] [-- --json FILE]`: bundles test/bench/NAME/main.ts and runs it.
import { ensureBuilt } from './lib/ensure.mjs';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';

const [name, ...args] = process.argv.slice(2);
const entry = `test/bench/${name}/main.ts`;
if (!name || !existsSync(entry)) {
  console.error(`No benchmark '${name ?? ''}': there is no ${entry}.`);
  process.exit(2);
}
await ensureBuilt();
const { build } = await import('esbuild');
await build({
  entryPoints: [entry],
  outfile: `dist/bench/${name}.mjs`,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  sourcemap: true,
  external: ['onnxruntime-node', 'cpu-features', 'esbuild', '*.node'],
  logLevel: 'warning',
  banner: {
    js: "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);",
  },
});
const child = spawn(process.execPath, ['--enable-source-maps', `dist/bench/${name}.mjs`, ...args], {
  stdio: 'inherit',
});
// Ctrl-C in a terminal reaches the benchmark too, which ends what it started: this waits for it.
for (const s of ['SIGINT', 'SIGTERM'])
  process.on(s, () => {
    if (s === 'SIGTERM') child.kill(s);
  });
child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
