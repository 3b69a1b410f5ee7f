import { parseRunFile, type RunFile } from '../config/index.js';
import { MOST_DESKTOPS, StudioError, type ProviderChoice } from '../domain/index.js';
import { serveOpenEnv } from '../gateway/openenv/serve.js';
import { onInterrupt } from './interrupt.js';
import { thisBundle } from '../service/engines.js';
import { openEnvironments } from '../service/openEnvironments.js';
import { thisBuild } from '../server/build.js';
import { serveDesktops } from '../service/serveDesktops.js';
import { giveAssets } from '../tasks/index.js';
import { actingOverrides } from './acting.js';
import { imageOf } from './desktop.js';
import { countOption, portOption, sizeOption, textOption, type Options } from './options.js';
import { print, tell } from './output.js';
import { serveToken } from './serveToken.js';
import { splitOption } from './split.js';

/** `desktop serve`: desktops for other programs until Ctrl-C. */
export async function serve(o: Options): Promise<number> {
  if ((o['osworld'] === true) === (o['openenv'] === true))
    throw new StudioError(
      'config.invalid',
      `desktop serve: ${o['osworld'] === true ? 'only one API can be served' : 'no API is given'}`,
      'Give either --osworld, the API of OSWorld’s virtual machines, or --openenv, environments with tasks.',
    );
  // Wrong ones are refused before a desktop starts.
  const at: Served = {
    port: portOption(o, 'port'),
    count: countOption(o, 'count', 1, MOST_DESKTOPS) ?? 1,
    token: await serveToken(o),
  };
  return o['openenv'] === true ? serveEnvironments(o, at) : serveMachines(o, at);
}
interface Served {
  /** Absent: the usual one of the API. */
  readonly port: number | undefined;
  readonly count: number;
  readonly token: string | undefined;
}

/** OpenEnv: one address, a session each client. */
async function serveEnvironments(o: Options, { port = 8000, count, token }: Served): Promise<number> {
  const stop = onInterrupt('Stopping: desktops are being removed.'),
    split = splitOption(o),
    host = textOption(o, 'host'),
    ended = new Promise<void>((done) => {
      stop.signal.addEventListener('abort', () => done(), { once: true });
    }),
    environments = await openEnvironments({
      config: parseRunFile({}, await servedConfig(o, count)),
      split,
      picture: o['picture'] !== false,
      version: thisBuild.version,
      entry: thisBundle(),
      signal: stop.signal,
      onLine: (line) => tell(`${line}\n`),
    });
  try {
    const served = await serveOpenEnv({
      environments,
      port,
      host,
      token,
    });
    print(`http://${host ?? '127.0.0.1'}:${served.port}\n`);
    await ended;
    await served.close();
  } finally {
    await environments.close();
    stop.off();
  }
  return 0;
}
async function servedConfig(o: Options, count: number): Promise<RunFile> {
  const over = await actingOverrides({ ...o, desktops: String(count) }),
    assets = textOption(o, 'assets');
  return {
    ...over,
    ...(assets === undefined ? {} : { tasks: { ...over.tasks, assets: giveAssets(assets) } }),
  };
}

/** OSWorld: a port each desktop. */
async function serveMachines(o: Options, { port = 5000, count, token }: Served): Promise<number> {
  const stop = onInterrupt('Stopping: desktops are being removed.'),
    ended = new Promise<void>((done) => {
      stop.signal.addEventListener('abort', () => done(), { once: true });
    });
  try {
    const served = await serveDesktops({
      provider: String(o['provider'] ?? 'auto') as ProviderChoice,
      image: imageOf(o),
      screen: sizeOption(o, 'screen'),
      assets: textOption(o, 'assets'),
      accessibility: o['accessibility'] === true,
      count,
      host: typeof o['host'] === 'string' ? o['host'] : undefined,
      port,
      token,
      onLine: (line) => tell(`${line}\n`),
      signal: stop.signal,
    });
    const host = typeof o['host'] === 'string' ? o['host'] : 'localhost';
    // OSWorld's own form: host, then the ports of server, Chromium, screen viewer and VLC. 0: there is none.
    for (const d of served.desktops) print(`${host}:${d.port}:${d.chromium}:0:${d.vlc}\n`);
    tell(
      served.desktops.some((d) => d.chromium !== 0)
        ? 'Any user of this machine can reach the ports of Chromium and VLC, which are at 127.0.0.1; a token closes them.\n'
        : `There are no ports of Chromium and VLC: ${token === undefined ? 'no way leads into these desktops' : 'they cannot ask for the token'}.\n`,
    );
    await ended;
    await served.close();
  } finally {
    stop.off();
  }
  return 0;
}
