import { EPISODE } from '../../cluster/providers/osworld/server.js';
import type { Desktop, DesktopProvider, DesktopSpec } from '../../cluster/types.js';
import { StudioError, messageOf, type Frame } from '../../domain/index.js';
import { ignoreFailure, orUndefined } from '../../concurrency/failures.js';
import { growingMs } from '../../concurrency/pause.js';
import type { AssetStore } from '../../tasks/assets.js';
import { jsonReply, type Reply, type Request } from '../http.js';
import { osworldFace, type OsworldFace } from './face.js';
import { PortRelay } from './ports.js';

export interface PlaceOptions {
  readonly provider: DesktopProvider;
  readonly spec: DesktopSpec;
  readonly picture: (f: Frame) => Promise<Buffer>;
  /** Files for /setup/download_file, since desktops have no network. Default: none. */
  readonly assets?: AssetStore | undefined;
  /** Desktops that were lost and replaced, in words. */
  readonly onLine: (line: string) => void;
  /** ms until a request tries again to start a desktop, after so many failures in a row. Default: 250 ms to 10 s. */
  readonly pauseMs?: (failures: number) => number;
}

const growing = (failures: number): number => growingMs({ baseMs: 250, maxMs: 10_000 }, failures - 1);
const stopped = (): StudioError =>
  new StudioError('cancelled', 'These desktops are no longer served.', 'Start `desktop serve` again.');

/** One port: a desktop, replaced when it is lost, and ports that lead to its programs. */
export class Place {
  readonly #o: PlaceOptions;
  #desktop: Desktop | undefined;
  #face: OsworldFace | undefined;
  /** Stops listening to that desktop. */
  #off: () => void = () => {};
  #renewing: Promise<void> | undefined;
  #resetting: Promise<void> | undefined;
  readonly #relays: PortRelay[] = [];
  readonly #ended = new AbortController();
  /** Desktops and resets so far: a client sees by it that its desktop is not the one that it had. */
  #episode = 0;
  /** Starts that failed since one worked: how many, why the last, and when a request tries again. */
  #failures = 0;
  #why = '';
  #notBefore = 0;

  constructor(o: PlaceOptions) {
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
    if (r.method === 'POST' && r.path === '/dart/reset') return this.#answerReset();
    const d = this.#desktop,
      face = this.#face;
    if (!d || !face) {
      this.#tryAgain();
      return this.#none();
    }
    if (r.method === 'GET' && r.path === '/dart/health')
      return jsonReply({ status: 'ok', desktop: d.id, settles: true, ...face.counts });
    return face.handle(r);
  }

  /** Ports of this machine that lead to these of the desktop; 0 where no way leads into it. */
  async openPorts(inside: readonly number[]): Promise<number[]> {
    const open: number[] = [];
    for (const port of inside) {
      if (!this.#desktop?.connect) {
        open.push(0);
        continue;
      }
      const relay = await PortRelay.listen({
        open: () => this.#desktop?.connect?.(port) ?? Promise.reject(new Error('There is no desktop now.')),
      });
      this.#relays.push(relay);
      open.push(relay.port);
    }
    return open;
  }

  async #answerReset(): Promise<Reply> {
    const began = performance.now();
    this.#resetting ??= this.#reset().finally(() => {
      this.#resetting = undefined;
    });
    try {
      await this.#resetting;
    } catch (e) {
      if (this.#desktop || (e instanceof StudioError && e.kind === 'cancelled')) throw e;
      return this.#none();
    }
    return jsonReply({ status: 'success', ms: performance.now() - began });
  }
  /** Resets the desktop in place where that works, else takes another one. */
  async #reset(): Promise<void> {
    const d = this.#desktop;
    this.#cut();
    if (!d) return this.renew();
    let fresh: Desktop | undefined;
    try {
      fresh = await this.#o.provider.reset(d);
    } catch (e) {
      if (e instanceof StudioError && e.kind === 'cancelled') throw e;
    }
    // The desktop was lost meanwhile; the one in its place is as fresh.
    if (this.#desktop !== d) return this.#desktop ? undefined : this.renew();
    if (!fresh) return this.renew();
    this.#use(fresh);
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
    this.#leave();
    try {
      if (old) await this.#o.provider.destroy(old);
      if (this.#ended.signal.aborted) throw stopped();
      const d = await this.#o.provider.create(this.#o.spec, this.#ended.signal);
      if (this.#ended.signal.aborted) {
        await this.#o.provider.destroy(d);
        throw stopped();
      }
      this.#use(d);
      this.#failures = 0;
    } catch (e) {
      this.#failures++;
      this.#why = messageOf(e);
      this.#notBefore = performance.now() + (this.#o.pauseMs ?? growing)(this.#failures);
      throw e;
    }
  }
  /** Whoever waits is told by lines and by what the port answers. */
  #renewBehind(): void {
    const renewed = this.renew().catch((e: unknown) => {
      if (!this.#ended.signal.aborted)
        this.#o.onLine(`No desktop could be started in its place: ${messageOf(e)} The next request tries again.`);
    });
    ignoreFailure(renewed, 'it was said');
  }
  #tryAgain(): void {
    if (this.#failures > 0 && !this.#renewing && !this.#ended.signal.aborted && performance.now() >= this.#notBefore)
      this.#renewBehind();
  }
  #none(): Reply {
    const message =
      this.#failures > 0
        ? `No desktop could be started: ${this.#why} Requests try again after a pause, POST /dart/reset at once.`
        : 'The desktop is being replaced.';
    return jsonReply({ status: 'error', message }, 503);
  }

  #use(d: Desktop): void {
    this.#leave();
    this.#episode++;
    this.#desktop = d;
    this.#face = osworldFace(d, this.#o.picture, this.#o.assets);
    this.#off = d.onEvent((e) => {
      if (e.type !== 'lost' || this.#ended.signal.aborted || this.#desktop !== d) return;
      this.#o.onLine(`${d.id} was lost (${e.error.message}) and is being replaced.`);
      this.#renewBehind();
    });
  }
  #leave(): void {
    this.#cut();
    this.#off();
    this.#off = () => {};
    this.#desktop = undefined;
    this.#face = undefined;
  }
  #cut(): void {
    for (const relay of this.#relays) relay.cut();
  }

  /** Starts nothing any more and disconnects everybody from the desktop, which its provider destroys. */
  async end(): Promise<void> {
    this.#ended.abort(stopped());
    await Promise.all(this.#relays.map((relay) => relay.close()));
    await orUndefined(this.#renewing ?? Promise.resolve(), 'what was being started is gone either way');
  }
}
