import { StudioError } from '../domain/index.js';
import { ALL_NEEDS, probeEngine, reachServer } from '../trainer/remote/probe.js';
import { onInterrupt } from './interrupt.js';
import { countOption, type Options } from './options.js';
import { print, printJson, tell } from './output.js';

const text = (v: string | boolean | undefined): string | undefined => (typeof v === 'string' ? v : undefined);

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
    await reachServer(server, stop.signal);
    const r = await probeEngine(
      {
        server: { ...server, onRetry: (why) => tell(`${why}; trying again\n`) },
        model: { base: text(o['model']), rank: countOption(o, 'rank', 0) ?? 16 },
        needs: { ...ALL_NEEDS, images: o['images'] !== false, sampling: o['sampling'] === true || ALL_NEEDS.sampling },
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
