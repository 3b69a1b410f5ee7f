import { once } from 'node:events';
import {
  engineDir,
  engineFailed,
  environmentState,
  howItEnded,
  LESS_MEMORY_FLAGS,
  startEngineServer,
  type RunningEngine,
} from '../trainer/engine/server.js';
import { checkEngineFlags } from './engineFlags.js';
import { defaultState } from './exportModel.js';
import type { Options } from './options.js';
import { print, printJson, tell } from './output.js';

/** `engine serve`: the single-GPU engine until Ctrl-C. Rejects with what ended it, where it ended by itself. */
export async function serve(rest: readonly string[], o: Options): Promise<number> {
  const source = engineDir();
  await checkEngineFlags(rest, source);
  const abort = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => abort.abort());
  // The first lines of the installer come after a while.
  if (!(await environmentState({ source })).ready)
    tell('Installing what the engine needs (5 GB), which takes some minutes.\n');
  const engine = await startEngineServer({
    model: String(o['model']),
    state: String(o['state'] ?? defaultState()),
    options: rest,
    onLine: (line) => tell(`${line}\n`),
    signal: abort.signal,
  });
  if (o['json']) printJson({ url: engine.url, device: engine.device }, 0);
  else
    print(
      `The engine answers at ${engine.url} on ${engine.device}. In the run file: trainer.remote.url ${engine.url}, policy.vlm.endpoints ["${engine.url}/v1"]. Ctrl-C ends it.\n`,
    );
  return untilEnded(engine, abort.signal);
}

/** 130 once it is stopped. What starts it again must not take its own end for a success. */
export async function untilEnded(
  engine: Pick<RunningEngine, 'process' | 'log' | 'stop'>,
  stopped: AbortSignal,
): Promise<number> {
  const child = engine.process;
  if (!stopped.aborted && child.exitCode === null && child.signalCode === null)
    // The last lines are there when the output is closed.
    await Promise.race([once(stopped, 'abort'), once(child, 'close')]);
  if (!stopped.aborted) throw engineFailed('The engine ended', howItEnded(child), engine.log, LESS_MEMORY_FLAGS);
  await engine.stop();
  return 130;
}
