// Bundles the runtime (ESM, the only process entry), the extension (CommonJS, what VS Code loads) and the pages of its
// webviews, and copies what they load at run time. Types are checked apart, by `npm run typecheck`.
import { build, transform } from 'esbuild';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import { writeIcons } from './lib/icons.mjs';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const time = Date.now();
// One build time for daemon and extension: it is how two windows agree on whose daemon is the newer one.
const define = { __BUILD_TIME__: String(time), __BUILD_VERSION__: JSON.stringify(version) };
const banner =
  "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);";
const common = { bundle: true, sourcemap: true, metafile: true, logLevel: 'warning', legalComments: 'none' };
/** A page is a folder with a `main.ts`. */
const pages = Object.fromEntries(
  (await readdir('webview')).map((p) => [p, `webview/${p}/main.ts`]).filter(([, f]) => existsSync(f)),
);

/**
 * What each role of runtime/main.ts runs, by bundle: the command line and daemon; workers; children with an ONNX
 * session.
 */
const parts = {
  'runtime.studio': ['cli/commandLine.js', 'service/interchangeWorker.js'],
  'runtime.workers': [
    'data/store/indexWorker.js',
    'data/store/screenWorker.js',
    'cluster/drivers/framebufferWorker.js',
    'run/backends/modelWorker.js',
    'service/thumbnailWorker.js',
    'interchange/jpegWorker.js',
    'tasks/metrics/metricWorker.js',
  ],
  'runtime.engines': [
    'policy/embedded/replicaProcess.js',
    'trainer/native/trainerProcess.js',
    'trainer/native/perceptionWorker.js',
  ],
};
/**
 * What the first run that uses it reads: credentials and TLS of a cluster (the rest of the provider is in
 * runtime.studio, whose classes it throws and extends), and what writes Parquet.
 */
const onDemand = {
  'runtime.kubernetes': 'cluster/providers/kubernetes/library.js',
  'runtime.parquet': 'interchange/parquet/library.js',
};
/** Packages that several parts use: each is in the VSIX once. */
const sharedPackages = {
  'sql.js': { bundle: 'runtime.sql', contents: "export { default } from 'sql.js';" },
  'csv-parse': { bundle: 'runtime.csv', contents: "export { parse } from 'csv-parse';" },
};
const packagesApart = {
  name: 'packages',
  setup(b) {
    b.onResolve({ filter: /^(sql\.js|csv-parse)$/ }, (a) => ({
      path: `./${sharedPackages[a.path].bundle}.js`,
      external: true,
    }));
  },
};
/** Parts that are imported on demand are in bundles of their own, beside the one that asks. */
const demandApart = {
  name: 'demand',
  setup(b) {
    b.onResolve({ filter: /\/library\.js$/ }, (a) => {
      if (a.kind !== 'dynamic-import') return undefined;
      const part = Object.keys(onDemand).find((k) => resolve(a.resolveDir, a.path).endsWith(resolve('/', onDemand[k])));
      return part && { path: `./${part}.js`, external: true };
    });
  },
};
/** main.ts imports its parts from their bundles beside it. */
const partsApart = {
  name: 'parts',
  setup(b) {
    b.onResolve({ filter: /^\./ }, (a) => {
      if (a.kind !== 'dynamic-import' || !a.importer.endsWith('main.ts')) return undefined;
      const part = Object.keys(parts).find((k) => parts[k].includes(a.path.slice(2)));
      if (!part)
        throw new Error(`runtime/main.ts imports ${a.path}, which belongs to no bundle: name it in scripts/build.mjs`);
      return { path: `./${part}.js`, external: true };
    });
  },
};
/**
 * What packages bring and nobody here calls: dockerode's BuildKit sessions (a gRPC server; images are built without),
 * ssh2's servers, SFTP and key making (an engine over SSH needs a client), and ChaCha20 of its ciphers, which takes a
 * WebAssembly module (every server has AES, too), zod's words in 50 languages and its reader of JSON schemas. Of
 * tweetnacl, which reads SSH keys with a passphrase, one function is called: Node has it, too. And readable-stream, which is a copy
 * of Node's own streams for older ones and for browsers.
 */
const unused = {
  name: 'unused',
  setup(b) {
    b.onResolve({ filter: /^\.\/(session|buildkit)$/ }, (a) =>
      /[\\/]dockerode[\\/]/.test(a.importer) ? { path: a.path, namespace: 'unused' } : undefined,
    );
    b.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
      contents: "module.exports = () => { throw new Error('BuildKit is not bundled'); };",
      loader: 'js',
    }));
    b.onResolve({ filter: /^readable-stream$/ }, () => ({ path: 'node:stream', external: true }));
    b.onLoad({ filter: /ssh2[\\/]lib[\\/](server|keygen|http-agents|protocol[\\/]SFTP)\.js$/ }, () => ({
      contents: 'module.exports = {};',
      loader: 'js',
    }));
    b.onLoad({ filter: /ssh2[\\/]lib[\\/]protocol[\\/]crypto[\\/]poly1305\.js$/ }, () => ({
      contents: 'module.exports = async () => ({ _malloc: () => 0, cwrap: () => undefined });',
      loader: 'js',
    }));
    b.onLoad({ filter: /ssh2[\\/]lib[\\/]protocol[\\/]constants\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace(
        'DEFAULT_CIPHER.filter(canUseCipher)',
        "DEFAULT_CIPHER.filter((c) => canUseCipher(c) && !c.startsWith('chacha20'))",
      ),
      loader: 'js',
    }));
    b.onLoad({ filter: /tweetnacl[\\/]nacl-fast\.js$/ }, () => ({
      contents:
        "const { createHash } = require('node:crypto'); exports.lowlevel = { crypto_hash(out, m, n) { out.set(createHash('sha512').update(m.subarray(0, n)).digest()); return 0; } };",
      loader: 'js',
    }));
    b.onLoad({ filter: /zod[\\/]v4[\\/]classic[\\/]from-json-schema\.js$/ }, () => ({
      contents: 'export const fromJSONSchema = undefined;',
      loader: 'js',
    }));
    b.onLoad({ filter: /zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
      loader: 'js',
    }));
  },
};
/**
 * Of the Kubernetes client only the kubeconfig is used: not its 800 models and APIs, not the auth-providers that
 * Kubernetes removed in 1.26 (access.ts refuses them; they start programs), not SOCKS (access.ts refuses it), and of
 * YAML only reading.
 */
const kubeconfigOnly = {
  name: 'kubeconfig',
  setup(b) {
    const instead = (filter, contents) => b.onLoad({ filter }, () => ({ contents, loader: 'js' }));
    instead(
      /client-node[\\/]dist[\\/]gen[\\/]index\.js$/,
      'export const createConfiguration = undefined, ServerConfiguration = undefined;',
    );
    instead(
      /client-node[\\/]dist[\\/](azure|gcp)_auth\.js$/,
      'export class AzureAuth { isAuthProvider() { return false; } } export { AzureAuth as GoogleCloudPlatformAuth };',
    );
    b.onResolve({ filter: /^(node-fetch|socks-proxy-agent)$/ }, (a) => ({ path: a.path, namespace: 'without' }));
    b.onLoad({ filter: /.*/, namespace: 'without' }, () => ({
      contents: 'export const Headers = globalThis.Headers, SocksProxyAgent = undefined;',
      loader: 'js',
    }));
    b.onResolve({ filter: /^js-yaml$/ }, () => ({ path: resolve('node_modules/js-yaml/lib/loader.js') }));
  },
};
/** Of the Parquet writer: neither variants nor geometry. */
const plainColumns = {
  name: 'plainColumns',
  setup(b) {
    b.onLoad({ filter: /hyparquet-writer[\\/]src[\\/](variant|geospatial|wkb)\.js$/ }, () => ({
      contents:
        "const none = () => { throw new Error('a column of a kind that is not bundled'); }; export { none as autoDetectShredding, none as normalizeShreddingConfig, none as encodeVariantColumn, none as geospatialStatistics, none as geojsonToWkb };",
      loader: 'js',
    }));
  },
};
/** The protocol's methods need only the classes of their names, not all that speaks the wire. */
const methodsOnly = {
  name: 'methods',
  setup(b) {
    b.onResolve({ filter: /^vscode-jsonrpc$/ }, (a) =>
      /protocol[\\/]\w*[mM]ethods\.ts$/.test(a.importer)
        ? { path: resolve('node_modules/vscode-jsonrpc/lib/common/messages.js') }
        : undefined,
    );
  },
};
/**
 * The extension: dist/extension.cjs, what it shares with parts that are imported on demand (`import()`: commands with
 * the first of them, the wire with the first connection), and these parts. esbuild splits only modules, VS Code 1.99
 * loads only CommonJS: split first, then converted.
 */
async function buildExtension() {
  const split = await build({
    ...common,
    entryPoints: { extension: 'extension/main.ts' },
    outdir: 'dist',
    chunkNames: 'extension.[name]-[hash]',
    splitting: true,
    write: false,
    sourcemap: 'inline',
    // ws looks for its optional native helpers and does without them.
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['vscode', 'bufferutil', 'utf-8-validate'],
    minify: true,
    define,
    plugins: [methodsOnly],
  });
  // Names that stay the same from build to build: what the VSIX holds is a list (test/fixtures/vsix-files.txt).
  let shared = 0;
  const names = Object.entries(split.metafile.outputs).map(([f, { entryPoint: e }]) => [
    basename(f),
    e === undefined
      ? `extension.shared${++shared}`
      : e.endsWith('/main.ts')
        ? 'extension'
        : `extension.${/node_modules\/([^/]+)/.exec(e)?.[1] ?? basename(e, '.ts')}`,
  ]);
  await Promise.all(
    split.outputFiles.map(async ({ path, text }) => {
      const name = names.find(([f]) => f === basename(path))[1],
        renamed = names.reduce((code, [f, n]) => code.replaceAll(`"./${f}"`, `"./${n}.cjs"`), text);
      const { code, map } = await transform(renamed, {
        format: 'cjs',
        platform: 'node',
        target: 'node20',
        minify: true,
        supported: { 'dynamic-import': false },
        sourcemap: true,
        sourcefile: basename(path),
        logLevel: 'warning',
      });
      await Promise.all([
        writeFile(`dist/${name}.cjs`, `${code}//# sourceMappingURL=${name}.cjs.map\n`),
        writeFile(`dist/${name}.cjs.map`, map),
      ]);
    }),
  );
  // Of an older build: it would be packaged.
  for (const f of await readdir('dist'))
    if (/^extension\b.*\.cjs(\.map)?$/.test(f) && !names.some(([, n]) => f === `${n}.cjs` || f === `${n}.cjs.map`))
      await rm(`dist/${f}`);
  return split;
}
/**
 * The pages: a script and a style sheet each, and what several of them share (the toolkit, the charts, ui.css), which
 * would otherwise be in the VSIX once a page. Names stay the same from build to build, as the extension's do.
 */
async function buildPages() {
  await rm('dist/webview', { recursive: true, force: true });
  const split = await build({
    ...common,
    entryPoints: { ...pages, ui: 'webview/ui/style.css' },
    outdir: 'dist/webview',
    chunkNames: 'shared-[hash]',
    splitting: true,
    write: false,
    platform: 'browser',
    target: 'chrome128',
    format: 'esm',
    minify: true,
    define,
    loader: { '.ttf': 'file' },
  });
  const chunks = split.outputFiles.map((f) => basename(f.path)).filter((f) => /^shared-\w+\.js$/.test(f)),
    named = (text) => chunks.reduce((code, f, i) => code.replaceAll(f.replace(/\.js$/, ''), `shared${i + 1}`), text),
    texts = /\.(js|css|map)$/;
  await mkdir('dist/webview', { recursive: true });
  await Promise.all(
    split.outputFiles.map((f) =>
      writeFile(`dist/webview/${named(basename(f.path))}`, texts.test(f.path) ? named(f.text) : f.contents),
    ),
  );
  return split;
}
/** Packages' own names are shortened: stack traces keep ours. A tenth of the runtime. */
const foreignNames = {
  name: 'foreign-names',
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]node_modules[\\/].*\.[cm]?js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { minifyIdentifiers: true, logLevel: 'error' });
      return { contents: code, loader: 'js' };
    });
  },
};
const runtime = {
  ...common,
  outdir: 'dist',
  platform: 'node',
  target: 'node20',
  format: 'esm',
  external: ['onnxruntime-node', 'cpu-features', '*.node'],
  banner: { js: banner },
  define,
  minifyWhitespace: true,
  minifySyntax: true, // names stay: stack traces in a user's log can be read
};
/** Brotli, of a file that is read once in a process: a tenth smaller in the VSIX. As long as it is newer it stays. */
async function packed(from, to) {
  await rm(to.replace(/\.br$/, ''), { force: true });
  if (existsSync(to) && statSync(to).mtimeMs > statSync(from).mtimeMs) return;
  const data = readFileSync(from),
    params = {
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: data.length,
    };
  await writeFile(to, brotliCompressSync(data, { params }));
}
const reexport = (files) => ({
  contents: files.map((f) => `export * from './${f}';`).join('\n'),
  resolveDir: 'runtime',
  loader: 'ts',
});

await mkdir('dist', { recursive: true });
const built = await Promise.all([
  build({ ...runtime, entryPoints: { runtime: 'runtime/main.ts' }, plugins: [partsApart, foreignNames] }),
  ...Object.entries(parts).map(([name, files]) =>
    build({
      ...runtime,
      stdin: reexport(files),
      outdir: undefined,
      outfile: `dist/${name}.js`,
      plugins: [unused, demandApart, packagesApart, foreignNames],
    }),
  ),
  ...Object.entries(onDemand).map(([name, file]) =>
    build({
      ...runtime,
      stdin: reexport([file]),
      outdir: undefined,
      outfile: `dist/${name}.js`,
      minify: true,
      plugins: [kubeconfigOnly, plainColumns],
    }),
  ),
  ...Object.values(sharedPackages).map(({ bundle, contents }) =>
    build({
      ...runtime,
      stdin: { contents, resolveDir: 'runtime' },
      outdir: undefined,
      outfile: `dist/${bundle}.js`,
      minify: true,
    }),
  ),
  buildExtension(),
  buildPages(),
]);
await Promise.all(
  ['dist/images', 'dist/engine', 'dist/evaluators'].map((d) => rm(d, { recursive: true, force: true })),
);
await Promise.all([
  cp('runtime/cluster/images', 'dist/images', { recursive: true }),
  cp('runtime/trainer/engine/requirements.txt', 'dist/engine/requirements.txt'),
  cp('runtime/trainer/engine/dart_engine', 'dist/engine/dart_engine', {
    recursive: true,
    filter: (f) => !f.includes('__pycache__'),
  }),
  ...['worker.py', 'requirements.txt', 'requirements-full.txt'].map((f) =>
    cp(`runtime/tasks/bridge/${f}`, `dist/evaluators/${f}`),
  ),
  packed('node_modules/sql.js/dist/sql-wasm.wasm', 'dist/sql-wasm.wasm.br'),
  // Names of icons come from what the runtime and the host send, too.
  writeIcons(['webview', 'extension', 'runtime/domain', 'runtime/protocol'], 'dist/webview'),
]);
// Last, and with the time the sources were read at: whoever asks whether dist/ is current compares with this
// (lib/ensure.mjs). The packages that went into the bundles are those whose licences the VSIX must carry (package.mjs).
const packages = built
  .flatMap((b) => (b ? Object.keys(b.metafile.inputs) : []))
  .map((f) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(f)?.[1])
  .filter(Boolean);
await writeFile('dist/build.json', JSON.stringify({ version, time, packages: [...new Set(packages)].sort() }) + '\n');
