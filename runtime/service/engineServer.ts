import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StudioError } from '../domain/index.js';
import { ensureEngineEnvironment } from '../trainer/engine/environment.js';
import { serveEngine, type RunningEngine } from '../trainer/engine/serve.js';

export interface EngineServerOptions {
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
    state = resolve(o.state);
  const environment = await ensureEngineEnvironment({ source, onLine: o.onLine, signal: o.signal });
  await mkdir(state, { recursive: true });
  const args = ['--model', o.model, '--state', state, ...o.options];
  return serveEngine({ environment, source, args, onLog: o.onLine });
}

export const defaultState = (): string => join(homedir(), '.cache', 'dart-studio', 'engine-state');

/** The engine's Python package: beside the bundle (dist/engine), or in the source tree. */
function engineDir(): string {
  const here = dirname(fileURLToPath(import.meta.url)),
    found = [join(here, 'engine'), join(here, '..', 'engine'), join(here, '..', 'trainer', 'engine')].find((d) =>
      existsSync(join(d, 'requirements.txt')),
    );
  if (found) return found;
  throw new StudioError(
    'engine.unavailable',
    `The engine's files (engine/requirements.txt) are not beside ${here}.`,
    'Build again with `npm run build`; the installation is incomplete.',
  );
}
