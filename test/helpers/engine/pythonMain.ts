/**
 * Plays the engine's Python (fakePython.ts): answers the version probe, makes "environments", installs nothing, and as
 * `-m dart_engine serve` is the reference server with the options, key, folder and manners of the real program.
 * `-m dart_engine merge` answers as the real one does, and writes what it was given in place of the sum.
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { DiskFolder } from './diskFolder.js';
import { ReferenceServer } from './server.js';

const [self, ...args] = process.argv.slice(2);
if (args[0] === '-c') process.stdout.write('3.13\n');
else if (args[1] === 'venv') venv(args[2]!);
else if (args[1] === 'pip') process.stdout.write('Successfully installed nothing\n');
else if (args[1] === 'dart_engine' && args[2] === 'merge') merge(args.slice(3));
else if (args[1] === 'dart_engine') await serve(args.slice(3));
else process.exitCode = 2;

function venv(folder: string): void {
  const to = join(folder, 'bin', 'python');
  mkdirSync(join(folder, 'bin'), { recursive: true });
  copyFileSync(self!, to);
  chmodSync(to, 0o755);
}

async function serve(options: string[]): Promise<void> {
  const text = { type: 'string' as const },
    { values } = parseArgs({
      args: options,
      strict: false,
      options: { model: text, state: text, port: text, 'end-with-stdin': { type: 'boolean' } },
    });
  const { model, state, port } = values as Record<'model' | 'state' | 'port', string>;
  if (values['end-with-stdin']) process.stdin.on('end', () => process.exit(0)).resume();
  process.on('SIGTERM', () => process.exit(0));
  if (!existsSync(join(model, 'config.json'))) fail(`OSError: ${model} has no config.json`);
  if (existsSync(join(model, 'too-large'))) fail('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8 GiB');
  process.stderr.write(`loading ${model}\n`);
  const words = process.env['FAKE_ENGINE_WORDS'],
    s = await ReferenceServer.start({
      baseModel: model,
      port: Number(port),
      disk: new DiskFolder(state),
      apiKey: process.env['DART_ENGINE_API_KEY'],
      ...(words === undefined ? {} : { policy: { words: JSON.parse(words) as string[] } }),
    });
  process.stdout.write(`${JSON.stringify({ event: 'ready', url: s.url, device: 'cpu', pid: process.pid })}\n`);
}
function fail(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(1);
}

function merge(options: string[]): void {
  const text = { type: 'string' as const },
    { values } = parseArgs({ args: options, options: { model: text, weights: text, out: text } }),
    { model, weights, out } = values as Record<'model' | 'weights' | 'out', string>,
    adapter = join(weights, 'adapter_model.safetensors');
  process.stderr.write(`loading ${model}\n`);
  if (!existsSync(adapter)) return refuse(`${weights} holds neither an adapter nor weights.`);
  if (readFileSync(adapter, 'utf8') === 'strange')
    return refuse('The adapter is of another model: it changes nothing.');
  mkdirSync(out);
  copyFileSync(join(model, 'config.json'), join(out, 'config.json'));
  writeFileSync(join(out, 'model.safetensors'), `${model} and ${readFileSync(adapter, 'utf8')}`);
  process.stdout.write(`${JSON.stringify({ layers: 1, parameters: 1, dtype: 'float32' })}\n`);
}
function refuse(error: string): void {
  process.stdout.write(`${JSON.stringify({ error })}\n`);
  process.exitCode = 1;
}
