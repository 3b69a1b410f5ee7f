import { StudioError } from '../domain/index.js';
import { TrainingHttp, type HttpOptions } from '../trainer/remote/http.js';
import { ALL_NEEDS, probeEngine } from '../trainer/remote/probe.js';
import { onInterrupt } from './interrupt.js';
import { numberOption, type Options } from './options.js';
import { print, printJson } from './output.js';

const text = (v: string | boolean | undefined): string | undefined => (typeof v === 'string' ? v : undefined);

const ANSWER_MS = 20_000;

/**
 * Throws `trainer.remote` where nothing answers: a run waits for a server that is starting, a person who asks about one
 * should hear at once.
 */
async function reach(server: HttpOptions, signal: AbortSignal): Promise<void> {
  const r = await new TrainingHttp(server).send({ path: 'healthz', timeoutMs: ANSWER_MS }, signal);
  // A server that takes its time is there, whatever it thinks of this page.
  if (r.kind === 'answer' || r.timedOut) return;
  throw new StudioError(
    'trainer.remote',
    `No training server answers at ${server.url.slice(0, 200)}: ${r.why}.`,
    'Check host and port, and that the server runs; `dart-studio engine serve --model MODEL` starts one on this machine.',
  );
}

/** `engine probe`: exit code 1 when a run cannot train on this server. */
export async function probe(url: string, o: Options): Promise<number> {
  const keyEnv = text(o['keyEnv']),
    apiKey = keyEnv === undefined ? undefined : process.env[keyEnv];
  if (keyEnv !== undefined && !apiKey)
    throw new StudioError(
      'config.invalid',
      `The environment variable ${keyEnv} is not set.`,
      'Set it to the key of this server, or leave --key-env out.',
    );
  const server = { url, apiKey, version: '0.38.0' },
    stop = onInterrupt('Stopping the probe.');
  try {
    await reach(server, stop.signal);
    const r = await probeEngine(
      {
        server,
        model: { base: text(o['model']), rank: numberOption(o, 'rank', 0) ?? 16 },
        needs: { ...ALL_NEEDS, images: o['images'] !== false, sampling: o['sampling'] === true },
        onCheck: (c) => {
          if (o['json'] !== true) print(`${c.ok ? '✓' : c.needed ? '✗' : '!'} ${c.name.padEnd(20)} ${c.detail}\n`);
        },
      },
      stop.signal,
    );
    if (o['json'] === true) printJson(r);
    else
      print(r.ok ? '\nThis server can train.\n' : '\nThis server cannot train exactly; the checks marked ✗ say why.\n');
    return r.ok ? 0 : 1;
  } finally {
    stop.off();
  }
}
