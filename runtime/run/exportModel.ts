import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseRunFile, type RunConfig, type RunFile } from '../config/index.js';
import { RunReader, readMetaText } from '../data/store/runStore.js';
import { ForeignFileError, copyForeign, readForeignText } from '../files/foreignFile.js';
import { POLICY_TRAITS, StudioError, type PolicyVersion, type ProcessEntry } from '../domain/index.js';
import { mergeWeights } from '../trainer/engine/merge.js';
import { checkPlain, hasWeights, weightsFolder } from '../trainer/engine/state.js';
import { weightsIn } from '../trainer/remote/savedState.js';
import { engineState } from './backends/ownEngine.js';
import { lastCheckpoint } from './resume.js';

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
  /** An adapter in PEFT's layout, a whole model folder, or the embedded policy's network. */
  readonly kind: 'adapter' | 'model' | 'onnx';
  /** The model that was trained. */
  readonly base: string | undefined;
  readonly files: readonly string[];
}

/**
 * Writes the trained weights of a run as other programs load them. The folder appears when all of it is there. Rejects
 * with `config.invalid` where there is nothing to write, `store.io` where the folder exists.
 */
export async function exportModel(r: ExportModelRequest): Promise<ExportedModel> {
  const to = resolve(r.to),
    { config, checkpoint } = await trainedIn(r);
  if (existsSync(to) && ((await stat(to)).isFile() || (await readdir(to)).length > 0))
    throw new StudioError('store.io', `${to} exists and is not empty.`, 'Give a folder that does not exist yet.');
  const fresh = `${to}.${process.pid}.new`;
  await mkdir(dirname(to), { recursive: true });
  try {
    const kind = await write(r, config, checkpoint.dir, fresh);
    await rm(to, { recursive: true, force: true });
    await rename(fresh, to);
    const base = config.policy.vlm?.model;
    return { dir: to, version: checkpoint.version, kind, base, files: (await readdir(to)).sort() };
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

async function trainedIn(
  r: ExportModelRequest,
): Promise<{ readonly config: RunConfig; readonly checkpoint: { readonly version: number; readonly dir: string } }> {
  const meta = JSON.parse(await readMetaText(r.run)) as { id: string; config: RunFile },
    config = parseRunFile(meta.config);
  if (!POLICY_TRAITS[config.policy.kind].trained)
    throw new StudioError(
      'config.invalid',
      `${meta.id} rolled out a model behind an external endpoint and trained nothing.`,
      'Choose a run with policy.kind "vlm" or "embedded".',
    );
  const reader = await RunReader.open(r.run, { index: r.entry }),
    checkpoint = await lastCheckpoint(reader, r.version).finally(() => reader.close());
  if (checkpoint) return { config, checkpoint };
  throw new StudioError(
    'config.invalid',
    r.version === undefined
      ? `${meta.id} has no checkpoint yet.`
      : `${meta.id} has no checkpoint of version ${r.version}.`,
    'Choose one of the versions in the folder checkpoints/ of the run.',
  );
}

async function write(
  r: ExportModelRequest,
  config: RunConfig,
  checkpoint: string,
  to: string,
): Promise<ExportedModel['kind']> {
  if (config.policy.kind === 'embedded') {
    if (r.merged)
      throw new StudioError(
        'config.invalid',
        'The embedded policy is one network: there is no adapter to merge.',
        'Leave --merged out.',
      );
    const reader = existsSync(join(checkpoint, 'reader.onnx')) ? ['reader.onnx'] : [];
    await copied(r.run, checkpoint, to, ['policy.onnx', ...reader, 'manifest.json']);
    return 'onnx';
  }
  const { inside, weights } = await weightsOf(r, checkpoint),
    adapter = existsSync(join(weights, 'adapter_config.json'));
  if (adapter && !r.merged) {
    await copied(inside, weights, to, ['adapter_model.safetensors']);
    const about = join(weights, 'adapter_config.json'),
      head = JSON.parse(await readForeignText(about, 1 << 20, { inside }).catch(refused(about))) as object;
    await writeFile(join(to, 'adapter_config.json'), `${JSON.stringify(head, null, 2)}\n`);
    return 'adapter';
  }
  await checkPlain(inside, weights);
  await mergeWeights({ model: config.policy.vlm!.model, weights, to, onLine: r.onLine, signal: r.signal });
  return 'model';
}

/** Where an engine has the weights of a checkpoint, and the folder out of which no link leads. */
async function weightsOf(
  r: ExportModelRequest,
  checkpoint: string,
): Promise<{ readonly inside: string; readonly weights: string }> {
  const [uri] = await weightsIn(checkpoint),
    own = engineState(r.run),
    states = [own, ...r.states],
    state = uri === undefined ? undefined : states.find((s) => hasWeights(s, uri));
  if (uri !== undefined && state !== undefined)
    return { inside: state === own ? r.run : state, weights: weightsFolder(state, uri)! };
  throw new StudioError(
    'config.invalid',
    `The weights of this checkpoint are with the engine that trained it${uri === undefined ? '' : ` (${uri})`}, and not in ${states.join(' or ')}.`,
    "Give that engine's folder with --state (the --state of `engine serve`), on the machine where it ran; of another server, download the checkpoint by its own means.",
  );
}

async function copied(inside: string, from: string, to: string, names: readonly string[]): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of names)
    await copyForeign(join(from, name), join(to, name), Infinity, { inside }).catch(refused(join(from, name)));
}
const refused =
  (file: string) =>
  (e: unknown): never => {
    if (!(e instanceof ForeignFileError)) throw e;
    throw new StudioError(
      'store.damaged',
      `${file} ${e.message}.`,
      'Restore the run folder from a copy, or choose another version.',
      { cause: e },
    );
  };
