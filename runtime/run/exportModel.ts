import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parseStoredConfig, type RunConfig, type RunFile } from '../config/index.js';
import { RunReader, readMetaText } from '../data/store/runStore.js';
import { StudioError, type PolicyVersion } from '../domain/index.js';
import type { ProcessEntry } from '../concurrency/process.js';
import { backendOf } from './backends/index.js';
import type { Backend, WrittenWeights } from './backends/types.js';
import { lastCheckpoint } from './checkpoints.js';

export interface ExportModelRequest {
  readonly run: string;
  /** Folder to make. */
  readonly to: string;
  /** A whole model in place of an adapter. */
  readonly merged: boolean;
  /** Default: the newest checkpoint. */
  readonly version?: number | undefined;
  /** `--state` of an engine that the run did not start itself. */
  readonly states: readonly string[];
  readonly entry: ProcessEntry;
  readonly signal: AbortSignal;
  readonly onLine: (line: string) => void;
}
export interface ExportedModel {
  readonly dir: string;
  readonly version: PolicyVersion;
  readonly kind: WrittenWeights;
  /** The model that was trained, where it has a name. */
  readonly base: string | undefined;
  readonly files: readonly string[];
}

/**
 * Writes the trained weights of a run as other programs load them. The folder appears when all of it is there. Rejects
 * with `config.invalid` where there is nothing to write, `store.io` where the folder exists.
 */
export async function exportModel(r: ExportModelRequest): Promise<ExportedModel> {
  const to = resolve(r.to),
    { config, checkpoint, writeWeights } = await trainedIn(r);
  if (existsSync(to) && ((await stat(to)).isFile() || (await readdir(to)).length > 0))
    throw new StudioError('store.io', `${to} exists and is not empty.`, 'Give a folder that does not exist yet.');
  const fresh = `${to}.${process.pid}.new`;
  await mkdir(dirname(to), { recursive: true });
  try {
    const kind = await writeWeights({ ...r, config, checkpoint: checkpoint.dir, to: fresh });
    await rm(to, { recursive: true, force: true });
    await rename(fresh, to);
    const base = backendOf(config.policy.kind).model?.(config);
    return { dir: to, version: checkpoint.version, kind, base, files: (await readdir(to)).sort() };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

interface Trained {
  readonly config: RunConfig;
  readonly checkpoint: { readonly version: number; readonly dir: string };
  readonly writeWeights: NonNullable<Backend['writeWeights']>;
}
async function trainedIn(r: ExportModelRequest): Promise<Trained> {
  const meta = JSON.parse(await readMetaText(r.run)) as { id: string; config: RunFile },
    config = parseStoredConfig(meta.config),
    { writeWeights } = backendOf(config.policy.kind);
  if (!writeWeights)
    throw new StudioError(
      'config.invalid',
      `${meta.id} rolled out a model that it did not train.`,
      'Choose a run that trained its policy.',
    );
  const reader = await RunReader.open(r.run, { index: r.entry }),
    checkpoint = await lastCheckpoint(reader, r.version).finally(() => reader.close());
  if (checkpoint) return { config, checkpoint, writeWeights };
  throw new StudioError(
    'config.invalid',
    r.version === undefined
      ? `${meta.id} has no checkpoint yet.`
      : `${meta.id} has no checkpoint of version ${r.version}.`,
    'Choose one of the versions in the folder checkpoints/ of the run.',
  );
}
