/** The layout of a run folder. */
import { join } from 'node:path';
import { StudioError, errorCode, messageOf, type RunId } from '../../domain/index.js';
import { beyondBounds } from '../../foreign/jsonBounds.js';
import { ForeignFileError, readForeignText } from '../../files/foreignFile.js';
import { replaceFile } from '../../files/replaceFile.js';
import { syncDir } from './journal.js';

/** run.json: what the run is. Never changed after creation; everything else is in the journal. */
export interface RunMeta {
  readonly id: RunId;
  readonly createdAt: number;
  readonly format: 1;
  /** The run file it was started with. */
  readonly config?: unknown;
  readonly name?: string;
  /** A collection of attempts (`dart-studio collect`), and what made them. */
  readonly collected?: { readonly policy: string };
}

export const runPaths = (
  dir: string,
): { meta: string; journal: string; index: string; frames: string; checkpoints: string; reserve: string } => ({
  meta: join(dir, 'run.json'),
  journal: join(dir, 'journal'),
  index: join(dir, 'index.sqlite'),
  frames: join(dir, 'frames'),
  checkpoints: join(dir, 'checkpoints'),
  reserve: join(dir, 'reserve'),
});

/** Format of run folders that this version reads and writes. */
const RUN_FORMAT = 1;
const newer = (dir: string, format: number): StudioError =>
  new StudioError(
    'store.newer',
    `The run in ${dir} was made by a newer DART Studio (format ${format}; this one reads up to ${RUN_FORMAT}).`,
    'Open it with the version that made it, or update DART Studio. Nothing in it was changed.',
    { details: { dir, format } },
  );
/** Far larger than any run file. */
const maxMetaBytes = 1 << 20,
  metaBounds = { depth: 32, values: 20_000 };
/** The text of run.json, which may be parsed. Rejects with Node's errors, or a `ForeignFileError`. */
export async function readMetaText(dir: string): Promise<string> {
  const text = await readForeignText(runPaths(dir).meta, maxMetaBytes, { inside: dir }),
    beyond = beyondBounds(text, metaBounds);
  if (beyond !== undefined) throw new ForeignFileError('ETOOLARGE', beyond);
  return text;
}

export async function readMeta(dir: string): Promise<RunMeta> {
  const file = runPaths(dir).meta;
  const text = await readMetaText(dir).catch((e: unknown) => {
    throw new StudioError(
      'store.io',
      `${dir} is not a run folder: run.json ${e instanceof ForeignFileError ? e.message : 'cannot be read'}.`,
      'Give a folder under runs/; `dart-studio runs list` shows them.',
      { cause: e, details: { file, code: errorCode(e) } },
    );
  });
  try {
    const meta = JSON.parse(text) as (Partial<Omit<RunMeta, 'format'>> & { readonly format?: unknown }) | null;
    if (typeof meta?.format === 'number' && meta.format > RUN_FORMAT) throw newer(dir, meta.format);
    if (typeof meta?.id !== 'string' || meta.format !== RUN_FORMAT)
      throw new Error('fields are missing or of another format');
    return meta as RunMeta;
  } catch (e) {
    if (e instanceof StudioError) throw e;
    throw new StudioError(
      'store.damaged',
      `run.json of ${dir} cannot be understood: ${messageOf(e)}.`,
      'Restore it from a copy, or open the run with the version that made it.',
      { cause: e, details: { file } },
    );
  }
}
export async function writeMeta(dir: string, meta: RunMeta): Promise<RunMeta> {
  const { meta: file } = runPaths(dir);
  try {
    await replaceFile(file, `${JSON.stringify(meta, null, 2)}\n`, { durable: true });
    await syncDir(dir);
    return meta;
  } catch (e) {
    throw io(e, file);
  }
}
/** A failure of the folder, in words. */
export const io = (e: unknown, path: string): StudioError =>
  e instanceof StudioError
    ? e
    : new StudioError(
        'store.io',
        `The run folder cannot be written: ${messageOf(e)}.`,
        'Check free space and permissions, or choose another folder.',
        { cause: e, details: { path } },
      );
