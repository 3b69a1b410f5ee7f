import { readdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { startsEngine, type RunConfig } from '../../config/index.js';
import { isObject, jsonOrNothing } from '../../foreign/json.js';
import { orUndefined } from '../../concurrency/failures.js';
import { readForeignText } from '../../files/foreignFile.js';
import { freeAt } from '../../files/freeSpace.js';
import type { CheckRow } from '../../protocol/types.js';
import { gb } from './disk.js';
import { Table } from './table.js';

/** Disk space of a model and of the weights that training makes of it, as far as its folder or its name says. */

/** Bytes of a number: of weights on a hub, of weights and of AdamW's m and v in float32. */
const HALF = 2,
  SINGLE = 4,
  MOMENTS = 2 * SINGLE;
/** Sampler weights of the version in use, and of the one that takes its place. */
const EXPORTED = 2;
/** A configuration is some kB; a stranger's is not read without end. */
const MOST_CONFIG = 1 << 20,
  BOUNDS = { depth: 16, values: 1 << 14 };

export async function checkModelDisk(c: RunConfig, base: string): Promise<CheckRow[]> {
  const { vlm } = c.policy,
    table = new Table('');
  if (!vlm || !startsEngine(c)) return table.rows;
  const folder = await modelIn(resolve(base, vlm.model)),
    parameters = folder?.parameters ?? parametersByName(vlm.model);
  if (parameters === undefined) return table.rows;
  if (!folder && !(await cached(vlm.model))) {
    const free = await freeAt(hub()),
      needed = parameters * HALF;
    row(table, 'disk for the model', free, needed, {
      what: `its name says ${billions(parameters)}, at least ${gb(needed)} in bfloat16`,
      remedy: `Free some on the disk of ${hub()}, set HF_HOME to a larger one, or give the folder of a model in policy.vlm.model.`,
    });
  }
  const saved = savedBytes(c, parameters, folder?.config);
  if (saved === undefined) return table.rows;
  const { keepCheckpoints } = c.store;
  row(table, 'disk for weights', await freeAt(resolve(base, c.store.dir)), saved.all, {
    what: `${keepCheckpoints} checkpoints and the one being saved take ${gb(saved.checkpoint)} each, weights for sampling ${gb(saved.exported)}`,
    remedy: 'Set store.dir to a larger disk, lower store.keepCheckpoints, or train an adapter (trainer.remote.rank).',
  });
  return table.rows;
}
function row(
  table: Table,
  name: string,
  free: number,
  needed: number,
  { what, remedy }: { readonly what: string; readonly remedy: string },
): void {
  const says = `${gb(free)} free; ${what} (an estimate)`;
  if (free >= needed) table.ok(name, says);
  else table.doubtful(name, says, remedy);
}
const billions = (parameters: number): string => `${Number((parameters / 1e9).toPrecision(3))} B parameters`;

/** `UI-TARS-1.5-7B` has 7e9; a name without a size says nothing. */
export function parametersByName(name: string): number | undefined {
  const found = /(?:^|[^\d.])(\d+(?:\.\d+)?)b(?![a-z\d])/i.exec(name);
  return found ? Number(found[1]) * 1e9 : undefined;
}

interface ModelFolder {
  readonly parameters: number;
  readonly config: Readonly<Record<string, unknown>>;
}
/** The model in a folder, by the size of its files and the number format that its configuration names. */
async function modelIn(dir: string): Promise<ModelFolder | undefined> {
  const config = await orUndefined(readConfig(join(dir, 'config.json')), 'then it is no folder of a model');
  if (!config) return undefined;
  const names = (await readdir(dir)).filter((n) => n.endsWith('.safetensors')),
    sizes = await Promise.all(names.map(async (n) => (await stat(join(dir, n))).size)),
    bytes = sizes.reduce((a, b) => a + b, 0),
    dtype = config['dtype'] ?? config['torch_dtype'] ?? textOf(config)['dtype'] ?? textOf(config)['torch_dtype'];
  return bytes === 0 ? undefined : { parameters: bytes / (dtype === 'float32' ? SINGLE : HALF), config };
}
async function readConfig(file: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  const said = jsonOrNothing(await readForeignText(file, MOST_CONFIG), BOUNDS);
  return isObject(said) ? said : undefined;
}
const textOf = (config: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  isObject(config['text_config']) ? config['text_config'] : config;

export interface SavedBytes {
  /** Bytes of one checkpoint on the engine: weights, and the optimizer's state. */
  readonly checkpoint: number;
  /** Bytes of all weights for sampling that exist at a time. */
  readonly exported: number;
  readonly all: number;
}
/** Undefined where the size of an adapter is not known: only a folder's configuration says how wide its layers are. */
export function savedBytes(
  c: RunConfig,
  parameters: number,
  config: Readonly<Record<string, unknown>> | undefined,
): SavedBytes | undefined {
  const { rank, options } = c.trainer.remote!,
    single = options?.dtype === 'float32',
    adapter = rank === 0 ? undefined : config && adapterParameters(textOf(config), rank);
  if (rank > 0 && adapter === undefined) return undefined;
  // An adapter is kept in float32; of weights below that, AdamW has a copy in float32.
  const checkpoint =
      adapter === undefined ? parameters * (MOMENTS + (single ? SINGLE : HALF + SINGLE)) : adapter * (MOMENTS + SINGLE),
    exported = EXPORTED * (adapter === undefined ? parameters * (single ? SINGLE : HALF) : adapter * SINGLE),
    // The one being saved, and the one that the KL term compares with.
    kept = c.store.keepCheckpoints + 1 + (c.trainer.klBeta > 0 ? 1 : 0);
  return { checkpoint, exported, all: kept * checkpoint + exported };
}
/** LoRA on attention, MLP and head of a language model, as the engine chooses its layers. */
function adapterParameters(text: Readonly<Record<string, unknown>>, rank: number): number | undefined {
  const of = (name: string): number => (Number.isSafeInteger(text[name]) ? (text[name] as number) : NaN),
    h = of('hidden_size'),
    wide = of('intermediate_size'),
    heads = of('num_attention_heads'),
    dim = Number.isSafeInteger(text['head_dim']) ? of('head_dim') : h / heads,
    keys = Number.isSafeInteger(text['num_key_value_heads']) ? of('num_key_value_heads') : heads;
  const layer = 2 * (h + heads * dim) + 2 * (h + keys * dim) + 3 * (h + wide),
    all = rank * (of('num_hidden_layers') * layer + h + of('vocab_size'));
  return Number.isFinite(all) ? all : undefined;
}

const hub = (): string => process.env['HF_HOME'] ?? join(homedir(), '.cache', 'huggingface');
const cached = async (model: string): Promise<boolean> =>
  (await orUndefined(stat(join(hub(), 'hub', `models--${model.replaceAll('/', '--')}`)), 'then it is not there')) !==
  undefined;
