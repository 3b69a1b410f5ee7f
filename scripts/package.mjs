// `node scripts/package.mjs [--target T]…`: dist/dart-studio-T.vsix for this platform, for the targets named, or for
// `all`. `--update-list` accepts the present contents.
import { thirdPartyNotices } from './lib/notices.mjs';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt } from './lib/ensure.mjs';
import { cacheRoot, ensureRig } from './lib/rig.mjs';
import { repack } from './lib/zip.mjs';

/**
 * Folder of onnxruntime-node's binaries by target. `universal` has none: it views runs and drives remote policies, and
 * says why it cannot train.
 */
export const targets = {
  'linux-x64': 'linux/x64',
  'linux-arm64': 'linux/arm64',
  'win32-x64': 'win32/x64',
  'win32-arm64': 'win32/arm64',
  'darwin-arm64': 'darwin/arm64',
  universal: undefined,
};
export const hostTarget = () =>
  `${process.platform}-${process.arch}` in targets ? `${process.platform}-${process.arch}` : 'universal';
/** The bars of what is downloaded, in MB (10^6 bytes); the other platforms' ONNX Runtime is larger and has none. */
const budgets = { 'linux-x64': 20, universal: 2 };
const listFile = 'test/fixtures/vsix-files.txt';

/**
 * Makes one VSIX. Rejects when vsce is missing or refuses, a budget is broken, or the contents are not those expected.
 */
export async function packageVsix(target, { updateList = false } = {}) {
  await ensureBuilt();
  const stage = resolve('.cache/vsix', target),
    out = resolve('dist', `dart-studio-${target}.vsix`);
  await rm(stage, { recursive: true, force: true });
  await mkdir(stage, { recursive: true });
  for (const f of [
    'README.md',
    'CHANGELOG.md',
    'LICENSE',
    '.vscodeignore',
    'media',
    'l10n',
    'dist/engine',
    'dist/evaluators',
    'dist/images',
    'dist/webview',
    'dist/sql-wasm.wasm.br',
    ...bundles(),
    ...readdirSync('.').filter((x) => /^package\.nls.*\.json$/.test(x)),
  ]) {
    if (existsSync(f)) await cp(f, join(stage, f), { recursive: true });
  }
  await writeFile(join(stage, 'CHANGELOG.md'), newest(readFileSync('CHANGELOG.md', 'utf8')));
  // The English words are in the code: only translations of them are read.
  await rm(join(stage, 'l10n/bundle.l10n.json'), { force: true });
  for (const f of files(join(stage, 'dist')).filter((x) => /\.(js|cjs|css)$/.test(x))) {
    const text = readFileSync(f, 'utf8');
    writeFileSync(f, text.replace(/\n(\/\/# sourceMappingURL=.*|\/\*# sourceMappingURL=.*\*\/)\s*$/, '\n'));
  }
  // What only a checkout needs is left out: the bundles hold the dependencies, and vsce would run scripts.
  const {
    scripts: _s,
    devDependencies: _d,
    dependencies: _p,
    allowScripts: _a,
    overrides: _o,
    private: _v,
    bin: _b,
    ...manifest
  } = JSON.parse(readFileSync('package.json', 'utf8'));
  await writeFile(join(stage, 'package.json'), JSON.stringify(manifest, null, 2) + '\n');
  if (targets[target]) await copyOnnx(targets[target], join(stage, 'dist/node_modules'));
  await writeFile(join(stage, 'THIRD_PARTY_NOTICES.txt'), notices(target));

  const rig = await ensureRig({ tools: true, packer: true });
  if (!rig.tools.ok) throw new Error(`vsce could not be installed: ${rig.tools.why}`);
  const vsce = join(rig.tools.path, 'node_modules/@vscode/vsce/vsce');
  await rm(out, { force: true });
  await run(
    process.execPath,
    [
      vsce,
      'package',
      '--no-dependencies',
      '--allow-missing-repository',
      '--no-rewrite-relative-links',
      ...(target === 'universal' ? [] : ['--target', target]),
      '--out',
      out,
    ],
    stage,
  );
  if (rig.packer.ok) {
    const { deflate } = await import(pathToFileURL(join(rig.packer.path, 'node_modules/libdeflate/index.js')).href);
    repack(out, (data) => deflate(data, 12), join(cacheRoot(), 'deflate'));
  } else console.error(`${basename(out)} is larger than it could be: ${rig.packer.why}`);
  return { target, file: out, bytes: statSync(out).size, problems: await check(target, out, updateList) };
}

/** Characters of the changes that are shown in VS Code. */
const MOST_CHANGES = 10_000;
/** The newest entries of the changelog, whole. */
function newest(text) {
  const end = text.length > MOST_CHANGES ? text.lastIndexOf('\n- ', MOST_CHANGES) : -1;
  return end < 0 ? text : `${text.slice(0, end)}\n\nEarlier changes are in CHANGELOG.md of the sources.\n`;
}

/** dist/extension.cjs, dist/runtime.js and their parts. */
const bundles = () =>
  readdirSync('dist')
    .filter((f) => /^(runtime|extension)(\.\w+)?\.c?js$/.test(f))
    .map((f) => `dist/${f}`);

/** ONNX Runtime for one platform, as Node finds it from dist/runtime.js. */
async function copyOnnx(platform, to) {
  const from = 'node_modules/onnxruntime-node',
    bin = `bin/napi-v6/${platform}`;
  for (const f of ['package.json', 'README.md']) await cp(join(from, f), join(to, 'onnxruntime-node', f));
  const kept = (list, f) => list.some((ending) => f.endsWith(ending));
  const copy = (src, dst, want) =>
    cp(src, dst, { recursive: true, filter: (f) => statSync(f).isDirectory() || want(f) });
  await copy(join(from, 'dist'), join(to, 'onnxruntime-node/dist'), (f) => kept(['.js'], f));
  // macOS: the library is there twice under two names; the binding asks for the short one.
  await copy(join(from, bin), join(to, 'onnxruntime-node', bin), (f) => !/libonnxruntime\.\d+\.\d+.*\.dylib$/.test(f));
  await cp('node_modules/onnxruntime-common/package.json', join(to, 'onnxruntime-common/package.json'));
  await copy('node_modules/onnxruntime-common/dist/cjs', join(to, 'onnxruntime-common/dist/cjs'), (f) =>
    kept(['.js', 'package.json'], f),
  );
}

/** Licences of everything that is shipped and not ours. */
function notices(target) {
  const { packages } = JSON.parse(readFileSync('dist/build.json', 'utf8'));
  return thirdPartyNotices(packages, targets[target] !== undefined);
}

/**
 * What is wrong with a VSIX: its size, or files that are not in the list or lack. Other platforms' binaries are not
 * compared by name.
 */
async function check(target, file, update) {
  const { unzipSync } = await import('fflate');
  const names = [];
  unzipSync(readFileSync(file), {
    filter: (f) => {
      names.push(f.name);
      return false;
    },
  });
  const have = names
    .filter((n) => n.startsWith('extension/') && !n.endsWith('/'))
    .map((n) => n.slice('extension/'.length))
    .sort();
  if (update && target === 'linux-x64') writeFileSync(listFile, have.join('\n') + '\n');
  const onnx = (f) => f.startsWith('dist/node_modules/'),
    platform = (f) => f.includes('/bin/napi-v6/');
  const want = readFileSync(listFile, 'utf8')
    .trim()
    .split('\n')
    .filter((f) => targets[target] !== undefined || !onnx(f));
  const compare = (xs) => new Set(target === 'linux-x64' ? xs : xs.filter((f) => !platform(f)));
  const problems = [],
    a = compare(have),
    b = compare(want),
    mb = statSync(file).size / 1e6;
  for (const f of a) if (!b.has(f)) problems.push(`${f} is in the VSIX and not in ${listFile}`);
  for (const f of b) if (!a.has(f)) problems.push(`${f} is in ${listFile} and not in the VSIX`);
  if (targets[target] && !have.some((f) => platform(f) && f.includes(`/${targets[target]}/`) && f.endsWith('.node')))
    problems.push('ONNX Runtime for this platform is missing');
  if (budgets[target] && mb >= budgets[target])
    problems.push(`${mb.toFixed(2)} MB, the budget is ${budgets[target]} MB`);
  return problems;
}

const files = (dir) =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile())
    .map((e) => join(e.parentPath ?? dirname(e.path), e.name));
const run = (cmd, args, cwd) =>
  new Promise((done, fail) => {
    const child = spawn(cmd, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const s of [child.stdout, child.stderr])
      s.on('data', (d) => {
        said += d;
      });
    child.once('error', fail);
    child.once('close', (code) =>
      code === 0 ? done() : fail(new Error(`vsce refused (exit code ${code}):\n${said}`)),
    );
  });

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const args = process.argv.slice(2),
    wanted = args.flatMap((a, i) => (a === '--target' ? [args[i + 1]] : []));
  const list = wanted.includes('all') ? Object.keys(targets) : wanted.length ? wanted : [hostTarget()];
  const unknown = list.filter((t) => !(t in targets));
  if (unknown.length) {
    console.error(`No target '${unknown[0]}'. Targets: ${Object.keys(targets).join(' ')} all.`);
    process.exit(2);
  }
  for (const t of list) {
    const r = await packageVsix(t, { updateList: args.includes('--update-list') });
    console.log(`${relative('.', r.file)}  ${(r.bytes / 1e6).toFixed(2)} MB`);
    for (const p of r.problems) console.error(`  ${basename(r.file)}: ${p}`);
    if (r.problems.length) {
      console.error(`If the contents are as they should be: node scripts/package.mjs --target linux-x64 --update-list`);
      process.exitCode = 1;
    }
  }
}
