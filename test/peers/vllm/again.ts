import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { RunStore } from '../../../runtime/data/store/runStore.js';
import { id, type RunId } from '../../../runtime/domain/index.js';
import type { RunConfig } from '../../../runtime/config/index.js';
import type { Completion } from '../../../runtime/policy/remote/completion.js';
import { isDecision, type Asked, type Exchange, type Wire } from './wire.js';

/** Requests that a server answered, asked once more: alone, of an exported adapter or of a merged model. */

/** What a server told of one answer, token by token. */
export interface Told {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  /** Tokens of the prompt that were in the prefix cache; undefined where the server does not say. */
  readonly cached: number | undefined;
}
type Usage = { readonly usage?: { readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null } };

export function toldIn(answer: string): Told {
  const said = JSON.parse(answer) as Completion & Usage,
    [choice] = said.choices!;
  return {
    tokens: choice!.token_ids!,
    logprobs: choice!.logprobs!.content!.map((t) => t.logprob!),
    cached: said.usage?.prompt_tokens_details?.cached_tokens,
  };
}
/** The same request, seed included, of this model. */
export const ask = async (server: string, asked: Asked, model: string, signal: AbortSignal): Promise<Told> =>
  toldIn(await answerTo(`${server}/v1/chat/completions`, { ...asked, model }, signal));
/** One after another: each is alone on the server. */
export async function askAll(
  server: string,
  of: readonly Asked[],
  model: string,
  signal: AbortSignal,
): Promise<Told[]> {
  const told: Told[] = [];
  for (const asked of of) told.push(await ask(server, asked, model, signal));
  return told;
}

export interface Distance {
  /** Tokens that both answers begin with; what follows an unlike one cannot be compared. */
  readonly tokens: number;
  readonly unlike: number;
  readonly most: number;
  readonly mean: number;
}
/** Answers to the same requests held against each other. */
export function distance(a: readonly Told[], b: readonly Told[]): Distance {
  const off: number[] = [];
  let unlike = 0;
  for (const [i, one] of a.entries()) {
    const other = b[i]!,
      differs = one.tokens.findIndex((t, n) => t !== other.tokens[n]),
      same = differs < 0 ? one.tokens.length : differs;
    if (differs >= 0) unlike++;
    for (let n = 0; n < same; n++) off.push(Math.abs(one.logprobs[n]! - other.logprobs[n]!));
  }
  const sum = off.reduce((x, y) => x + y, 0);
  return { tokens: off.length, unlike, most: Math.max(0, ...off), mean: sum / Math.max(1, off.length) };
}

/** What policies asked for under a version and what was answered, on any server. */
export const answeredBy = (wires: readonly Wire[], version: number): Exchange[] =>
  wires
    .flatMap((w) => w.exchanges)
    .filter((e) => isDecision(e) && e.status === 200 && e.asked.model?.endsWith(`@v${version}`));

/** The folder as a run's: what commands take that read runs. */
export async function recordRun(run: string, config: RunConfig): Promise<void> {
  const create = { id: id<RunId>('vllm'), createdAt: Date.now(), config },
    checkpoints = join(run, 'checkpoints'),
    store = await RunStore.open(run, { index: 'local', create });
  for (const name of (await readdir(checkpoints)).sort())
    await store.append({ type: 'checkpoint', version: Number(name.slice(1)), dir: join(checkpoints, name) });
  await store.close();
}

/** `export-model` as people call it: the bundle, in a process of its own. */
export async function exportModel(
  run: string,
  version: number,
  to: string,
  merged: boolean,
  signal: AbortSignal,
): Promise<void> {
  const args = [resolve('dist/runtime.js'), 'export-model', run, to, '--checkpoint', String(version), '--json'];
  await promisify(execFile)(process.execPath, merged ? [...args, '--merged'] : args, { signal, maxBuffer: 16 << 20 });
}
/** Loads an adapter under a name that the server has not had. */
export const loadAdapter = (server: string, name: string, folder: string, signal: AbortSignal): Promise<void> =>
  post(`${server}/v1/load_lora_adapter`, { lora_name: name, lora_path: folder }, signal);
export const unloadAdapter = (server: string, name: string, signal: AbortSignal): Promise<void> =>
  post(`${server}/v1/unload_lora_adapter`, { lora_name: name }, signal);

async function post(url: string, body: object, signal: AbortSignal): Promise<void> {
  await answerTo(url, body, signal);
}
async function answerTo(url: string, body: object, signal: AbortSignal): Promise<string> {
  const headers = { 'content-type': 'application/json' },
    response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal }),
    text = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${text.slice(0, 300)}`);
  return text;
}
