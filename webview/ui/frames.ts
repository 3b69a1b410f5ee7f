/**
 * Pictures of a trajectory: thumbnails asked for in batches, full screenshots kept decoded for quick scrubbing. Of a run
 * both come from the daemon, which knows where its frames are; those of a file lie beside it.
 */
import type { Requester } from '../protocol.js';
import type { Host } from './host.js';
import { t } from './words.js';

const thumbWidth = 320,
  batch = 48,
  keepDecoded = 24;
export type Thumb = ({ readonly uri: string } | { readonly missing: string }) & {
  /** The daemon did not answer: it stands in until the daemon is back, and is then asked for again. */
  readonly standsIn?: true;
};

export type FramesHost = Requester<'frame/thumbnails'> & Pick<Host, 'uri' | 'frame' | 'on'>;

export class Frames {
  readonly #host: FramesHost;
  readonly #thumbs = new Map<string, Thumb>();
  readonly #asked = new Set<string>();
  readonly #full = new Map<string, HTMLImageElement>();
  /** Full pictures that the daemon did not answer for. */
  readonly #unanswered = new Set<string>();
  /** Files of full pictures that the daemon named. */
  readonly #files = new Map<string, string>();
  #wanted: string[] = [];
  #source: { readonly run?: string; readonly dir: string } = { dir: '' };
  /** New thumbnails are there. */
  changed: () => void = () => undefined;
  /** Full pictures that could not be had can be asked for again. */
  renewed: () => void = () => undefined;

  constructor(host: FramesHost) {
    this.#host = host;
    host.on((m) => {
      if (m.type === 'daemon' && m.state === 'ready') this.#again();
    });
  }

  /**
   * Sets the source of frames: the run whose daemon has them (none for a file), and the folder of pictures that are
   * files.
   */
  open(run: string | undefined, dir: string): void {
    if (run === this.#source.run && dir === this.#source.dir) return;
    this.#source = { dir, run };
    this.#thumbs.clear();
    this.#asked.clear();
    this.#full.clear();
    this.#unanswered.clear();
    this.#files.clear();
    this.#wanted = [];
  }
  /** File of the full picture. */
  path(hash: string): string {
    return this.#files.get(hash) ?? `${this.#source.dir}/${hash.slice(0, 2)}/${hash}.png`;
  }
  uri(hash: string): string | undefined {
    return this.#host.frame(this.#source.dir, hash);
  }

  /** undefined while it is being made; asks for it on first sight. */
  thumb(hash: string): Thumb | undefined {
    const there = this.#thumbs.get(hash);
    if (there || this.#asked.has(hash)) return there;
    this.#asked.add(hash);
    if (this.#source.run === undefined) {
      const t = this.#fallback(hash);
      this.#thumbs.set(hash, t);
      return t;
    }
    if (this.#wanted.push(hash) === 1) queueMicrotask(() => this.#ask());
    return undefined;
  }
  #ask(): void {
    const source = this.#source,
      run = source.run,
      all = this.#wanted;
    this.#wanted = [];
    if (run === undefined) return;
    for (let i = 0; i < all.length; i += batch) {
      const hashes = all.slice(i, i + batch);
      this.#host
        .request('frame/thumbnails', {
          run,
          hashes,
          width: thumbWidth,
        })
        .then(
          ({ paths }) => {
            for (const h of hashes) {
              const p = paths[h],
                uri = p === undefined ? undefined : this.#host.uri(p);
              this.#put(
                source,
                h,
                uri ? { uri } : p === undefined ? { missing: t('The picture cannot be read') } : this.#fallback(h),
              );
            }
          },
          () => {
            for (const h of hashes) this.#put(source, h, { ...this.#fallback(h), standsIn: true });
          },
        )
        .finally(() => {
          if (source === this.#source) this.changed();
        });
    }
  }
  #put(source: unknown, hash: string, t: Thumb): void {
    if (source === this.#source) this.#thumbs.set(hash, t);
  }
  #fallback(hash: string): Thumb {
    const uri = this.uri(hash);
    return uri ? { uri } : { missing: t('The picture is outside the folders that this page may show') };
  }

  /**
   * The full picture as an element of its own, loading or loaded; undefined where the page may not show it. The newest
   * stay decoded.
   */
  picture(hash: string): HTMLImageElement | undefined {
    const { run } = this.#source,
      uri = this.uri(hash);
    if (run === undefined && !uri) return undefined;
    let img = this.#full.get(hash);
    if (img) this.#full.delete(hash);
    else {
      img = new Image();
      img.decoding = 'async';
      img.draggable = false;
      if (run === undefined) img.src = uri!;
      else this.#load(img, run, hash, uri);
    }
    this.#full.set(hash, img);
    for (const old of this.#full.keys()) {
      if (this.#full.size <= keepDecoded) break;
      this.#full.delete(old);
    }
    return img;
  }
  /** `own`: the file that it is in a run of an older version. */
  #load(img: HTMLImageElement, run: string, hash: string, own: string | undefined): void {
    const source = this.#source,
      // An address that leads nowhere ends in an error, as a picture that is not there should.
      show = (uri: string | undefined): void => {
        img.src = uri ?? 'data:,';
      };
    this.#host.request('frame/thumbnails', { run, hashes: [hash], width: 0 }).then(
      ({ paths: { [hash]: path } }) => {
        if (path !== undefined && source === this.#source) this.#files.set(hash, path);
        show(path === undefined ? undefined : this.#host.uri(path));
      },
      () => {
        if (source === this.#source) this.#unanswered.add(hash);
        show(own);
      },
    );
  }

  /** The daemon is back: what it did not answer while it was away is not missing. */
  #again(): void {
    const thumbs = [...this.#thumbs].filter(([, t]) => t.standsIn),
      full = [...this.#unanswered];
    for (const [h] of thumbs) {
      this.#thumbs.delete(h);
      this.#asked.delete(h);
    }
    for (const h of full) this.#full.delete(h);
    this.#unanswered.clear();
    if (thumbs.length > 0) this.changed();
    if (full.length > 0) this.renewed();
  }
}
