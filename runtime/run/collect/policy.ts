import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import {
  merge,
  parseRunFile,
  parseRunText,
  parseStoredConfig,
  traitsOf,
  type RunConfig,
  type RunFile,
} from '../../config/index.js';
import { RunReader } from '../../data/store/runStore.js';
import { readForeignText } from '../../files/foreignFile.js';
import { StudioError, messageOf } from '../../domain/index.js';
import type { ProcessEntry } from '../../concurrency/process.js';
import { backendOf } from '../backends/index.js';
import { runFileOfServer } from '../backends/serverFile.js';
import { locate } from '../locate.js';
import { lastCheckpoint, startingPoint } from '../checkpoints.js';

/** The policy that makes attempts: named by a run file, a run that trained it, or the address of a model server. */
export interface Actor {
  readonly config: RunConfig;
  /** Name for people, which tells policies apart. */
  readonly name: string;
  readonly checkpoint?: { readonly version: number; readonly dir: string };
}
/** Sampling settings of a model behind an endpoint, by the names that a run file gives them. */
export interface ChatSampling {
  readonly maxTokens?: number | undefined;
  readonly images?: number | undefined;
}
export interface ActorOptions {
  /** For a server: model to ask for; default: the first it names. */
  readonly model?: string | undefined;
  /** For a server: how its model writes coordinates. */
  readonly coordinates?: string | undefined;
  /** For a run: version of the checkpoint; default: the newest. */
  readonly version?: number | undefined;
  readonly over: RunFile;
  /** Settings in place of the policy's own; a policy that has none of these is refused. */
  readonly chat?: ChatSampling | undefined;
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
}

/** Rejects with `config.invalid`, or what keeps a server from being asked. */
export async function actorOf(policy: string, o: ActorOptions): Promise<Actor> {
  if (/^https?:\/\//.test(policy)) return serverActor(policy, o);
  const path = resolve(policy),
    // A checkpoint of a run is that run at that version.
    [, ofRun, version] = /^(.+)[\\/]checkpoints[\\/]v(\d+)$/.exec(path) ?? [];
  if (ofRun !== undefined && existsSync(join(ofRun, 'run.json')))
    return runActor(ofRun, { ...o, version: o.version ?? Number(version) });
  const folder = (await stat(path).catch(() => undefined))?.isDirectory() ? path : dirname(path);
  if (existsSync(join(folder, 'run.json')) && existsSync(join(folder, 'journal'))) return runActor(folder, o);
  return fileActor(path, o);
}

async function serverActor(url: string, o: ActorOptions): Promise<Actor> {
  const { file, name } = await runFileOfServer(url, o);
  return { config: withChat(o, (over) => parseRunFile(file, over)), name };
}

/**
 * Reads a config, then once more with the chat settings: which section they belong to depends on the kind of policy.
 */
function withChat({ over, chat }: Pick<ActorOptions, 'over' | 'chat'>, read: (over: RunFile) => RunConfig): RunConfig {
  const config = read(over);
  if (chat?.maxTokens === undefined && chat?.images === undefined) return config;
  const { kind } = config.policy;
  if (!traitsOf(kind).chat)
    throw new StudioError(
      'config.invalid',
      `Policies of kind ${kind} write no text and have no earlier screenshots before it.`,
      'Leave out --max-tokens and --images: they are of models behind an endpoint.',
    );
  return read(merge(over, { policy: { [kind]: chat } }) as RunFile);
}

async function runActor(dir: string, o: ActorOptions): Promise<Actor> {
  const reader = await RunReader.open(dir, { index: o.entry });
  try {
    return await actorOfRun(reader, o);
  } finally {
    await reader.close();
  }
}
/**
 * The policy of a run, trained by it or not: its checkpoint of that version, else its newest. Rejects with
 * `config.invalid`.
 */
export async function actorOfRun(run: RunReader, o: Pick<ActorOptions, 'version' | 'over' | 'chat'>): Promise<Actor> {
  const { meta } = run,
    config = withChat(o, (over) => parseStoredConfig(meta.config ?? {}, over)),
    checkpoint = await lastCheckpoint(run, o.version);
  if (!checkpoint && traitsOf(config.policy.kind).trained)
    throw new StudioError(
      'config.invalid',
      `${meta.id} has no checkpoint${o.version === undefined ? '' : ` of version ${o.version}`}.`,
      'Choose another run, or one of the versions in its folder checkpoints/.',
    );
  return checkpoint ? { config, checkpoint, name: `${meta.id} v${checkpoint.version}` } : { config, name: meta.id };
}

/** The policy that a run file names. Rejects with `config.invalid`. */
export async function fileActor(path: string, o: Pick<ActorOptions, 'over' | 'chat'>): Promise<Actor> {
  const text = await readForeignText(path, 16 << 20).catch((e: unknown) => {
    throw new StudioError(
      'config.invalid',
      `${path} cannot be read: ${messageOf(e)}`,
      'Give a run file, a run folder, or the address of a model server (http://HOST:PORT/v1).',
    );
  });
  const config = locate(
      withChat(o, (over) => parseRunText(text, path, over)),
      [dirname(path), process.cwd()],
    ),
    { from } = config.warmStart,
    model = backendOf(config.policy.kind).model?.(config);
  if (model === undefined && from === undefined)
    throw new StudioError(
      'config.invalid',
      `${path} names a policy that runs teach, and no weights.`,
      'Give the folder of a run that trained one, or set warmStart.from.',
    );
  const checkpoint = from === undefined ? undefined : await startingPoint(from),
    name = model ?? path;
  return checkpoint ? { config, checkpoint, name: `${name} from ${checkpoint.dir}` } : { config, name };
}
