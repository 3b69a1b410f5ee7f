// `npm run test:peers:tinker [-- tuft|skyrl|hatchery ...]`: installs training servers that others wrote, starts each on
// the processor with a tiny text model, probes it and trains on it with the production driver; writes
// test/peers/tinker/results and the table of its README. Needs PyPI, Python 3.12 and 10 GB of disk the first time.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundled } from './lib/bundle.mjs';
import { ensureBuilt } from './lib/ensure.mjs';
import { stamp } from './lib/stamp.mjs';
import { install, KEY, SERVERS, start, versionsOf } from './lib/tinkerServers.mjs';
import { failures, table } from './lib/tinkerTable.mjs';

const folder = join(process.cwd(), 'test/peers/tinker'),
  results = join(folder, 'results', 'tinker.json'),
  scratch = mkdtempSync(join(tmpdir(), 'tinker-peers-')),
  asked = process.argv.slice(2),
  names = asked.length > 0 ? asked : Object.keys(SERVERS),
  // Before anything is written: the results of one server are changes to those after it.
  made = stamp();
/** A probe of a server that compiles each shape anew takes minutes. */
const PROBE_MS = 25 * 60_000,
  TRAIN_MS = 20 * 60_000;
const RANK = 8;
const unknown = names.find((n) => !(n in SERVERS));
if (unknown) {
  console.error(`There is no ${unknown}: name some of ${Object.keys(SERVERS).join(', ')}, or none for all.`);
  process.exit(1);
}

/** What a program prints; its errors go where ours go. */
const output = (file, argv, ms, codes = [0]) =>
  new Promise((resolve, reject) => {
    const child = spawn(file, argv, {
      stdio: ['ignore', 'pipe', 2],
      timeout: ms,
      env: { ...process.env, PEER_KEY: KEY },
    });
    let text = '';
    child.stdout.on('data', (data) => (text += data));
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (codes.includes(code)) resolve(text);
      else reject(new Error(`${argv.slice(0, 3).join(' ')} ended with ${signal ?? code}: ${text.slice(-2000)}`));
    });
  });

/** Made once, by whichever environment comes first: all servers train the same weights. */
function tinyModel(python) {
  const model = join(scratch, 'model');
  if (!existsSync(model)) {
    const { status } = spawnSync(python, [join(folder, 'model.py'), model], { stdio: ['ignore', 2, 'ignore'] });
    if (status !== 0) throw new Error('the tiny model could not be made');
  }
  return model;
}
/** The probe as users run it: for a run with screenshots. */
async function probed(url, base) {
  const argv = ['dist/runtime.js', 'engine', 'probe', url, '--json', '--key-env', 'PEER_KEY'].concat([
    ...['--model', base, '--rank', String(RANK)],
  ]);
  return JSON.parse(await output(process.execPath, argv, PROBE_MS, [0, 1]));
}
async function trained(program, name, url, base, work, { carriage, leaveModels }) {
  const order = join(work, 'order.json'),
    dir = join(work, 'trainer');
  mkdirSync(dir, { recursive: true });
  writeFileSync(
    order,
    JSON.stringify({ url, key: KEY, base, rank: RANK, carriage, leaveModels, dir, eps: SERVERS[name].eps ?? 1e6 }),
  );
  return JSON.parse(await output(process.execPath, [program, order], TRAIN_MS));
}
/** The gradient out of two adapters, against autograd in the environment of the server that can (torch, PEFT). */
async function gradientOf(name, { before, after, file, error }, model, work) {
  if (error) return { error };
  const at = SERVERS[name].adapter;
  if (!at) return { error: 'this server saves no adapter' };
  // tinker://model/sampler_weights/name, or without the word in the middle.
  const folders = [before, after].map((uri) => at(work, uri.split('/')[2], uri.split('/').at(-1)));
  return JSON.parse(await output(install('tuft'), [join(folder, 'gradient.py'), model, ...folders, file], TRAIN_MS));
}

async function measure(name, program) {
  const begun = performance.now(),
    python = install(name),
    result = { server: SERVERS[name].title, ...made, versions: versionsOf(name) },
    work = join(scratch, name),
    model = tinyModel(python),
    base = SERVERS[name].model(model);
  const server = await start(name, model, work);
  try {
    result.probe = await probed(server.url, base);
    result.probe.model = undefined;
    if (result.probe.carriage) {
      const { gradient, ...learned } = await trained(program, name, server.url, base, work, result.probe);
      result.trained = learned;
      result.gradient = await gradientOf(name, gradient, model, work).catch((e) => ({ error: e.message }));
    }
  } catch (e) {
    result.error = e.message;
  } finally {
    await server.end();
  }
  result.seconds = Math.round((performance.now() - begun) / 1000);
  return result;
}

try {
  await ensureBuilt();
  const program = await bundled(join(folder, 'train.ts'), 'tinkerPeerTrain'),
    before = existsSync(results) ? JSON.parse(readFileSync(results, 'utf8')) : { servers: {} },
    servers = { ...before.servers };
  mkdirSync(join(folder, 'results'), { recursive: true });
  for (const name of names) {
    console.error(`${SERVERS[name].title}…`);
    servers[name] = await measure(name, program).catch((e) => ({
      server: SERVERS[name].title,
      ...made,
      error: e.message,
    }));
    const wrong = failures(servers);
    // After each server: a later one that fails takes nothing of what was seen away.
    writeFileSync(results, `${JSON.stringify({ node: process.version, ...wrong, servers }, null, 2)}\n`);
    const page = join(folder, 'README.md');
    writeFileSync(page, table(readFileSync(page, 'utf8'), servers));
  }
  const { failed, probe_false_refusals } = failures(servers);
  console.log(`probe_false_refusals ${probe_false_refusals}`);
  for (const f of failed) console.log(`FAIL ${f}`);
  process.exitCode = failed.length > 0 ? 1 : 0;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
