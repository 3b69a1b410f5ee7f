import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { random } from '../../../runtime/domain/index.js';
import { ensureEngineEnvironment, type EngineEnvironment } from '../../../runtime/trainer/engine/environment.js';
import { serveEngine } from '../../../runtime/trainer/engine/serve.js';
import { packageVersions } from '../../helpers/engine/packageVersions.js';
import { clickOn, MOST_PIXELS, WORDS, type Engine } from './plan.js';

const SOURCE = resolve('runtime/trainer/engine');

export const environment = (): Promise<EngineEnvironment> =>
  ensureEngineEnvironment({ source: SOURCE, onLine: (line) => process.stderr.write(`${line}\n`) });

/** Of the packages that decide what the engine computes. */
export const versionsOf = (e: EngineEnvironment): Promise<Readonly<Record<string, string>>> =>
  packageVersions(e.python, ['torch', 'transformers', 'peft']);

/** A tiny random model with the words of the plan; made once. Returns its folder. */
export const seeingModel = (e: EngineEnvironment, dir: string): string => onceModel(e, join(dir, 'model'), WORDS);

/** A model of random weights that has each of these words, without commas, as one token. Returns its folder. */
export function tinyModel(
  e: EngineEnvironment,
  dir: string,
  words: readonly string[],
  more: readonly string[] = [],
): string {
  const options = ['--words', words.join(','), '--max-pixels', String(MOST_PIXELS), ...more];
  execFileSync(e.python, ['-m', 'dart_engine', 'tiny-model', dir, ...options], {
    env: { ...process.env, PYTHONPATH: SOURCE },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  return dir;
}

/** A random model with as many layers as published ones have; made once. Returns its folder. */
export const deepModel = (e: EngineEnvironment, dir: string, layers: number): string =>
  onceModel(e, dir, [], ['--layers', String(layers), '--hidden', '256']);

function onceModel(e: EngineEnvironment, dir: string, words: readonly string[], more?: readonly string[]): string {
  return existsSync(join(dir, 'preprocessor_config.json')) ? dir : tinyModel(e, dir, words, more);
}

/** The engine of a model as run files name it; its port is the same every time, since a run is made once. */
export function engineAt(model: string, port: number): Engine {
  const file = join(model, 'config.json'),
    config = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { image_token_id: number }) : undefined;
  return { url: `http://127.0.0.1:${port}`, model, imageToken: config?.image_token_id ?? 0 };
}
export async function startEngine(
  e: EngineEnvironment,
  o: {
    readonly model: string;
    readonly state: string;
    readonly port: number;
    /** Further options of the engine. */
    readonly options?: readonly string[];
  },
): Promise<Engine & { stop(): Promise<void> }> {
  const args = ['--model', o.model, '--state', o.state, '--port', String(o.port), ...(o.options ?? [])],
    { url, stop } = await serveEngine({ environment: e, source: SOURCE, args });
  return { ...engineAt(o.model, o.port), url, stop };
}

/** An OpenAI-compatible endpoint that never looks: each answer clicks on a random cell. */
export async function randomClicks(port: number): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const r = random('bench/vlm/random'),
    server = createServer((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('content-type', 'application/json');
        const content = clickOn(r.next(), r.next());
        response.end(
          JSON.stringify({ model: 'random', choices: [{ index: 0, message: { role: 'assistant', content } }] }),
        );
      });
    });
  await new Promise<void>((done, failed) => server.once('error', failed).listen(port, '127.0.0.1', done));
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}/v1`,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
