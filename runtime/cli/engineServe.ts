import { once } from 'node:events';
import { startEngineServer } from '../trainer/engine/server.js';
import { defaultState } from './exportModel.js';
import type { Options } from './options.js';

/** `engine serve`: the single-GPU engine until Ctrl-C. */
export async function serve(rest: readonly string[], o: Options): Promise<number> {
  const abort = new AbortController();
  const stopped = new Promise<void>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const)
      process.once(signal, () => {
        abort.abort();
        done();
      });
  });
  const engine = await startEngineServer({
    model: String(o['model']),
    state: String(o['state'] ?? defaultState()),
    options: rest,
    onLine: (line) => process.stderr.write(`${line}\n`),
    signal: abort.signal,
  });
  process.stdout.write(
    o['json']
      ? `${JSON.stringify({ url: engine.url, device: engine.device })}\n`
      : `The engine answers at ${engine.url} on ${engine.device}. In the run file: trainer.remote.url ${engine.url}, policy.vlm.endpoints ["${engine.url}/v1"]. Ctrl-C ends it.\n`,
  );
  await Promise.race([stopped, once(engine.process, 'exit')]);
  await engine.stop();
  return 0;
}
