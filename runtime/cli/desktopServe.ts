import { DEFAULT_IMAGE, StudioError, type ProviderChoice, type Size } from '../domain/index.js';
import { serveDesktops } from '../service/serveDesktops.js';
import { numberOption, type Options } from './options.js';

/** `desktop serve`: desktops for other programs until Ctrl-C. */
export async function serve(o: Options): Promise<number> {
  if (o['osworld'] !== true)
    throw new StudioError(
      'config.invalid',
      'desktop serve: which API the desktops speak is missing',
      'Add --osworld, the API of OSWorld’s virtual machines.',
    );
  const served = await serveDesktops({
    provider: String(o['provider'] ?? 'auto') as ProviderChoice,
    image: String(o['image'] ?? DEFAULT_IMAGE),
    screen: screenOf(o['screen']),
    accessibility: o['accessibility'] === true,
    count: numberOption(o, 'count') ?? 1,
    host: typeof o['host'] === 'string' ? o['host'] : undefined,
    port: numberOption(o, 'port', 0) ?? 5000,
    token: typeof o['token'] === 'string' ? o['token'] : undefined,
    onLine: (line) => process.stderr.write(`${line}\n`),
  });
  const host = typeof o['host'] === 'string' ? o['host'] : 'localhost';
  // OSWorld's own form: host, then the ports of server, Chromium, screen viewer and VLC. 0: this image has none.
  for (const d of served.desktops) process.stdout.write(`${host}:${d.port}:0:0:0\n`);
  await new Promise<void>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done());
  });
  await served.close();
  return 0;
}

function screenOf(v: string | boolean | undefined): Size | undefined {
  if (typeof v !== 'string') return undefined;
  const m = /^(\d{2,5})x(\d{2,5})$/.exec(v);
  if (!m)
    throw new StudioError('config.invalid', `--screen ${v}: not a size`, 'Write it as 1920x1080, or leave it out.');
  return { width: Number(m[1]), height: Number(m[2]) };
}
