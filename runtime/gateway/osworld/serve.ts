import { cancelled } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { listen, type Face } from '../http.js';
import { Place, type PlaceOptions } from './place.js';

export interface ServeOptions extends PlaceOptions {
  readonly count: number;
  /** Port of the first desktop; the others follow. 0: free ones. */
  readonly port: number;
  readonly host?: string;
  readonly token?: string | undefined;
  /** Ends the start, which then rejects with `cancelled`. */
  readonly signal?: AbortSignal;
}
export interface ServedDesktop {
  readonly desktop: string;
  readonly port: number;
  /** Ports at 127.0.0.1 that lead to Chromium's DevTools and VLC's web interface; 0 where no way leads in. */
  readonly chromium: number;
  readonly vlc: number;
}
export interface Served {
  readonly desktops: readonly ServedDesktop[];
  close(): Promise<void>;
}

/** Ports in the desktop at which programs of OSWorld's tasks listen: DevTools (socat, which a task starts), and VLC. */
const INSIDE = [9222, 8080] as const;

/**
 * Serves desktops as OSWorld's virtual machines, a port each, and two more that lead to their Chromium and VLC. Besides
 * OSWorld's routes each answers GET /dart/health, POST /dart/reset, which brings the desktop back to its first frame in
 * a fraction of a second, and POST /dart/settle, which answers when it is at rest. A lost desktop is replaced; until
 * then its port answers 503. Rejects when a desktop or a port cannot be had, with nothing left behind.
 */
export async function serveOsworld(o: ServeOptions): Promise<Served> {
  const places: Place[] = [],
    faces: Face[] = [],
    desktops: ServedDesktop[] = [];
  const close = async (): Promise<void> => {
    await Promise.all([...places.map((p) => p.end()), ...faces.map((f) => f.close())]);
    await o.provider.dispose();
  };
  const stop = (): void => {
    for (const p of places) ignoreFailure(p.end(), 'the desktop that is being started says so');
  };
  o.signal?.addEventListener('abort', stop, { once: true });
  try {
    for (let i = 0; i < o.count; i++) {
      if (o.signal?.aborted) throw cancelled('The start of desktops');
      const place = new Place(o);
      places.push(place);
      await place.renew();
      // These programs cannot ask for a token, so with a token their ports stay closed.
      const [chromium = 0, vlc = 0] = o.token === undefined ? await place.openPorts(INSIDE) : [],
        face = await listen({
          host: o.host,
          port: o.port === 0 ? 0 : o.port + i,
          token: o.token,
          handle: (r) => place.handle(r),
        });
      faces.push(face);
      desktops.push({ desktop: place.id, port: face.port, chromium, vlc });
    }
  } catch (e) {
    await close();
    throw e;
  } finally {
    o.signal?.removeEventListener('abort', stop);
  }
  return { desktops, close };
}
