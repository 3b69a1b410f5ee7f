// TypeScript of the tests and benchmarks as one file that Node runs.

/** What bundles of CommonJS packages need in an ES module. */
const banner =
  "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);";

/** Bundles `entry` as dist/bench/NAME.mjs, inside the checkout: what is not bundled is found from there. Answers its path. */
export async function bundled(entry, name) {
  const { build } = await import('esbuild'),
    outfile = `dist/bench/${name}.mjs`;
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    sourcemap: true,
    external: ['onnxruntime-node', 'cpu-features', 'esbuild', '*.node'],
    logLevel: 'warning',
    banner: { js: banner },
  });
  return outfile;
}
