// `npm run test:engine [-- pytest arguments]`: makes the engine's environment (once), runs its tests, and writes
// test/engine/results/engine.json. `node scripts/engine.mjs serve|tiny-model ...` runs the engine itself;
// `npm run test:peers:tinker-sdk` trains with the official SDK against it and writes test/peers/tinker-sdk/results.
// That run includes tinker-cookbook's rl/train.py, unmodified. `node scripts/engine.mjs gpu [SHAPE ...] [--out FILE]` says
// what an update costs in the shape of real models, on whatever GPU is there; without one, a small shape on the processor.
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { bundled } from './lib/bundle.mjs';
import { engineDigest } from './lib/engineDigest.mjs';
import { load } from './lib/load.mjs';
import { stamp, stampFile } from './lib/stamp.mjs';
import { requireNode } from './lib/system.mjs';

requireNode();
const { build } = await import('esbuild');
await build({
  entryPoints: ['runtime/trainer/engine/environment.ts'],
  outfile: 'dist/engine-environment.mjs',
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  logLevel: 'warning',
});
const { packageVersions } = await load('test/helpers/engine/packageVersions.ts');
const { ensureEngineEnvironment } = await import('../dist/engine-environment.mjs');

const source = join(process.cwd(), 'runtime/trainer/engine');
const tests = join(process.cwd(), 'test/engine');
const [command = 'test', ...args] = process.argv.slice(2),
  made = stamp(),
  digest = engineDigest();

const started = performance.now();
const environment = await ensureEngineEnvironment({
  source,
  requirements: [join(tests, 'requirements.txt')],
  onLine: (line) => console.error(line),
}).catch((error) => {
  const { message, remedy, details } = error.error ?? { message: String(error), remedy: '' };
  console.error(`${details?.output ?? ''}\n${message} ${remedy}`);
  process.exit(1);
});
const installSeconds = (performance.now() - started) / 1000;

const run = (file, argv, env = {}, cwd = process.cwd()) =>
  new Promise((resolve) => {
    const child = spawn(file, argv, {
      cwd,
      stdio: 'inherit',
      env: { ...process.env, PYTHONPATH: source, OMP_NUM_THREADS: '2', ...env },
    });
    for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
    child.on('close', (code) => resolve(code ?? 1));
  });

if (command === 'tinker-sdk') process.exit(await tinkerSdk());
if (command === 'gpu') process.exit(await run(environment.python, [join(tests, 'gpu.py'), ...args]));
if (command !== 'test') process.exit(await run(environment.python, ['-m', 'dart_engine', command, ...args]));

const figuresFile = join(environment.folder, 'figures.json'),
  objective = join(process.cwd(), await bundled(join(tests, 'objective.ts'), 'engineObjective'));
await rm(figuresFile, { force: true });
const begun = performance.now();
const code = await run(
  environment.python,
  ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', ...args],
  { ENGINE_FIGURES: figuresFile, OBJECTIVE_PROGRAM: objective, HF_HUB_OFFLINE: '1', PYTHONDONTWRITEBYTECODE: '1' },
  tests,
);
if (code === 0 && args.length === 0) await writeResult();
process.exit(code);

/** Of the engine's environment. */
async function versionsOf() {
  const names = [
    'torch',
    'transformers',
    'peft',
    'tokenizers',
    'fastapi',
    'uvicorn',
    'protobuf',
    'safetensors',
    'pillow',
    'numpy',
  ];
  return packageVersions(environment.python, names);
}
/** Written after a whole, successful run only: the file says what was seen. */
async function writeResult() {
  const versions = await versionsOf();
  const seen = JSON.parse(await readFile(figuresFile, 'utf8'));
  const result = {
    ...made,
    engine: digest,
    device: 'cpu',
    versions,
    installed: environment.installed ? { seconds: Math.round(installSeconds) } : 'before',
    seconds: Math.round((performance.now() - begun) / 1000),
    ...seen,
  };
  await mkdir(join(tests, 'results'), { recursive: true });
  await writeFile(join(tests, 'results', 'engine.json'), `${JSON.stringify(result, null, 2)}\n`);
  console.log(
    `Wrote test/engine/results/engine.json: ${result.tests.passed} of ${result.tests.collected} tests passed.`,
  );
}

function output(file, argv) {
  return new Promise((resolve) => {
    const child = spawn(file, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (data) => (text += data));
    child.on('close', () => resolve(text.trim()));
  });
}

/** The SDK in an environment of its own; it borrows torch from the engine's, for forward_backward_custom. */
async function tinkerSdk() {
  const folder = join(process.cwd(), 'test/peers/tinker-sdk');
  const cache = join(homedir(), '.cache', 'dart-studio', 'peers');
  const sdk = await ensureEngineEnvironment({ source: folder, cache, onLine: (line) => console.error(line) });
  const site = 'import sysconfig; print(sysconfig.get_path("purelib"))';
  const [ours, theirs] = [await output(environment.python, ['-c', site]), await output(sdk.python, ['-c', site])];
  await writeFile(join(theirs, 'engine.pth'), `${ours}\n`);
  await run(
    sdk.python,
    ['-m', 'uv', 'pip', 'install', '--quiet', '--python', sdk.python, 'tinker-cookbook==0.6.1'].concat([
      '--override',
      join(folder, 'overrides.txt'),
    ]),
  );
  const scratch = await mkdtemp(join(tmpdir(), 'tinker-sdk-'));
  const model = join(scratch, 'model');
  const picture = join(scratch, 'picture.png');
  await run(environment.python, ['-m', 'dart_engine', 'tiny-model', model]);
  await run(
    environment.python,
    ['-c', `from helpers import png; open(${JSON.stringify(picture)}, "wb").write(png(1))`],
    {
      PYTHONPATH: `${source}${delimiter}${tests}`,
    },
  );
  const engine = spawn(
    environment.python,
    [
      '-m',
      'dart_engine',
      'serve',
      '--model',
      model,
      '--state',
      join(scratch, 'state'),
      '--port',
      '0',
      '--threads',
      '2',
    ],
    { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, PYTHONPATH: source, HF_HUB_OFFLINE: '1' } },
  );
  const ready = await new Promise((resolve) => engine.stdout.once('data', (data) => resolve(JSON.parse(String(data)))));
  const env = { TINKER_BASE_URL: ready.url, TINKER_API_KEY: 'tml-dummy', PYTHONPATH: '', HF_HUB_OFFLINE: '1' };
  const results = (name) => join(folder, 'results', name);
  await mkdir(join(folder, 'results'), { recursive: true });
  const trained = await run(sdk.python, [join(folder, 'train.py'), picture, results('sdk.json')], env);
  const cookbook = [join(folder, 'cookbook.py'), model, join(scratch, 'log'), results('cookbook.json')];
  const code = trained || (await run(sdk.python, cookbook, env));
  engine.kill();
  const versions = { engine: await versionsOf() };
  stampFile(results('sdk.json'), made, { versions });
  stampFile(results('cookbook.json'), made, { versions });
  await rm(scratch, { recursive: true, force: true });
  return code;
}
