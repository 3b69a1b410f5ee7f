/** The processes that the benchmark starts of itself. */
import { drawing, DrawnTime, cpuMs, type HarnessRequest, type Reply, type Request } from './wire.js';
import { makeScreens } from './screens.js';
import { serveDesktops } from './desktops.js';
import { serveModels, type Asked } from './models.js';
import { runDaemon } from './daemon.js';
import { runBare } from './bare.js';
import { localScreens } from './local.js';

const tell = (r: Reply): void => {
  process.send!(r);
};
const next = (): Promise<unknown> => new Promise((r) => process.once('message', r));

export async function child(): Promise<void> {
  process.on('disconnect', () => process.exit());
  const r = (await next()) as Request;
  try {
    if (r.role === 'daemon' || r.role === 'bare') {
      const window = async (at: 'begins' | 'ended'): Promise<void> => {
        tell({ window: at });
        await next();
      };
      const result = await (r.role === 'daemon' ? runDaemon(r, window) : runBare(r, window));
      tell({ result });
      process.disconnect();
    } else if (r.role === 'local') tell({ local: await localScreens(r.screen) });
    else serve(r);
  } catch (e) {
    tell({ failed: e instanceof Error ? (e.stack ?? e.message) : String(e) });
  }
}

/** Serves until the benchmark goes; every message asks what was used so far. */
function serve(r: HarnessRequest): void {
  const drawn = new DrawnTime(),
    draw = drawing(r.seed),
    asked: Asked = { requests: 0, bytes: 0, images: 0 };
  const server =
    r.role === 'desktops'
      ? serveDesktops({ screens: makeScreens(r.screen, r.seed), drawn, draw })
      : serveModels({ drawn, draw, asked, hurry: r.hurry, slow: r.slow });
  process.on('message', () => tell({ used: { drawnMs: drawn.total(), cpuMs: cpuMs(), detail: { ...asked } } }));
  if (r.role === 'desktops') server.listen(r.socket, 4096, () => tell({ ready: r.socket }));
  else
    server.listen(0, '127.0.0.1', 4096, () => {
      const a = server.address() as { port: number };
      tell({ ready: `http://127.0.0.1:${a.port}/v1` });
    });
}
