import { EPISODE } from '../../cluster/providers/osworld/server.js';
import type { Desktop, DesktopProvider, DesktopSpec } from '../../cluster/types.js';
import { StudioError, ignoreFailure, messageOf, type Frame } from '../../domain/index.js';
import { listen, jsonReply, type Face, type Reply, type Request } from '../http.js';
import { osworldFace, type OsworldFace } from './face.js';

export interface ServeOptions {
  readonly provider: DesktopProvider;
  readonly spec: DesktopSpec;
  readonly count: number;
  /** Port of the first desktop; the others follow. 0: free ones. */
  readonly port: number;
  readonly host?: string;
  readonly token?: string | undefined;
  readonly picture: (f: Frame) => Promise<Buffer>;
  /** Desktops that were lost and replaced, in words. */
  readonly onLine: (line: string) => void;
}
export interface ServedDesktop {
  readonly desktop: string;
  readonly port: number;
}
export interface Served {
  readonly desktops: readonly ServedDesktop[];
  close(): Promise<void>;
}

/**
 * Serves desktops as OSWorld's virtual machines, a port each. Besides OSWorld's routes each answers GET /dart/health,
 * POST /dart/reset, which brings the desktop back to its first frame in a fraction of a second, and POST /dart/settle,
 * which answers when it is at rest. A lost desktop is
 * replaced; until then its port answers 503. Rejects when a desktop or a port cannot be had, with nothing left behind.
 */
export async function serveOsworld(o: ServeOptions): Promise<Served> {
  const places: Place[] = [],
    faces: Face[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(faces.map((f) => f.close()));
    for (const p of places) p.end();
    await o.provider.dispose();
  };
  try {
    for (let i = 0; i < o.count; i++) {
      const place = new Place(o);
      places.push(place);
      await place.renew();
      faces.push(
        await listen({
          host: o.host,
          port: o.port === 0 ? 0 : o.port + i,
          token: o.token,
          handle: (r) => place.handle(r),
        }),
      );
    }
  } catch (e) {
    await close();
    throw e;
  }
  return { desktops: faces.map((f, i) => ({ port: f.port, desktop: places[i]!.id })), close };
}

/** One port: a desktop, replaced when it is lost. */
class Place {
  readonly #o: ServeOptions;
  #desktop: Desktop | undefined;
  #face: OsworldFace | undefined;
  #renewing: Promise<void> | undefined;
  #ended = false;
  /** Desktops and resets so far: a client sees by it that its desktop is not the one that it had. */
  #episode = 0;

  constructor(o: ServeOptions) {
    this.#o = o;
  }
  get id(): string {
    return this.#desktop?.id ?? '';
  }

  /** Every answer says of which desktop it is, since which reset. */
  async handle(r: Request): Promise<Reply> {
    const before = this.#episode,
      reply = await this.#handle(r),
      // A reset begins the episode that its answer names.
      episode = r.path === '/dart/reset' ? this.#episode : before;
    return { ...reply, headers: { ...reply.headers, [EPISODE]: String(episode) } };
  }
  async #handle(r: Request): Promise<Reply> {
    const d = this.#desktop,
      face = this.#face;
    if (!d || !face) return jsonReply({ status: 'error', message: 'The desktop is being replaced.' }, 503);
    if (r.method === 'GET' && r.path === '/dart/health')
      return jsonReply({ status: 'ok', desktop: d.id, settles: true, ...face.counts });
    if (r.method === 'POST' && r.path === '/dart/reset') {
      const began = performance.now();
      await this.#reset(d);
      return jsonReply({ status: 'success', ms: performance.now() - began });
    }
    return face.handle(r);
  }

  /** In place where that works, else with another desktop. */
  async #reset(d: Desktop): Promise<void> {
    try {
      this.#use(await this.#o.provider.reset(d));
    } catch (e) {
      if (e instanceof StudioError && e.kind === 'cancelled') throw e;
      await this.renew();
    }
  }

  /** Another desktop in place of the one there was. */
  renew(): Promise<void> {
    this.#renewing ??= this.#replace().finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }
  async #replace(): Promise<void> {
    const old = this.#desktop;
    this.#desktop = undefined;
    this.#face = undefined;
    if (old) await this.#o.provider.destroy(old);
    const d = await this.#o.provider.create(this.#o.spec);
    this.#use(d);
    d.onEvent((e) => {
      if (e.type !== 'lost' || this.#ended || this.#desktop !== d) return;
      this.#o.onLine(`${d.id} was lost (${e.error.message}) and is being replaced.`);
      ignoreFailure(
        this.renew().catch((x: unknown) => {
          this.#o.onLine(`No desktop could be started in its place: ${messageOf(x)}`);
        }),
        'it was said',
      );
    });
  }
  #use(d: Desktop): void {
    this.#episode++;
    this.#desktop = d;
    this.#face = osworldFace(d, this.#o.picture);
  }
  end(): void {
    this.#ended = true;
  }
}
