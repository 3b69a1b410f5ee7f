import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { shippedFolder } from '../../files/shippedFolder.js';
import { ensureEngineEnvironment } from './environment.js';
import { serveEngine, type RunningEngine, type ServeOptions } from './serve.js';

export { environmentState } from './environment.js';
export { engineFailed, howItEnded, LESS_MEMORY_FLAGS, type RunningEngine } from './serve.js';

export interface EngineServerOptions extends Pick<ServeOptions, 'key' | 'own' | 'silenceMs'> {
  /** A folder with a model's files, or the name of one that the Hugging Face cache holds or can fetch. */
  readonly model: string;
  /** Checkpoints, adapters and the record of answered requests; a server started on the same folder goes on. */
  readonly state: string;
  /** Further options of `python -m dart_engine serve`. */
  readonly options: readonly string[];
  /** Progress and log, a line at a time. */
  readonly onLine: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * The single-GPU engine on this machine's loopback address. The first start makes its Python environment. Rejects with
 * `engine.unavailable`, with the last lines of its log.
 */
export async function startEngineServer(o: EngineServerOptions): Promise<RunningEngine> {
  const source = engineDir(),
    state = resolve(o.state),
    { key, own, silenceMs, signal, onLine } = o;
  const environment = await ensureEngineEnvironment({ source, onLine, signal });
  await mkdir(state, { recursive: true });
  return serveEngine({
    environment,
    source,
    // Each option is a single argument, so that a model's name is never taken for an option.
    args: [`--model=${o.model}`, `--state=${state}`, ...o.options],
    onLog: onLine,
    signal,
    ...(key === undefined ? {} : { key }),
    ...(silenceMs === undefined ? {} : { silenceMs }),
    // Started in its state folder, where a name like `org/model` is not by accident the path of a folder.
    ...(own ? { own, cwd: state } : {}),
  });
}

/** The engine's Python package. */
export const engineDir = (): string =>
  shippedFolder(
    { from: import.meta.url, name: 'engine', holds: 'requirements.txt', inSources: '.' },
    'engine.unavailable',
    "The engine's files",
  );
