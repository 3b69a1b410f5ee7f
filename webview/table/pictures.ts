/** Small pictures of last screens, asked for when the list rests: what is passed by while scrolling costs nothing. */
import type { Requester } from '../protocol.js';
import { Frames, type FramesHost } from '../ui/frames.js';

const restMs = 90;
type PicturesHost = Requester<'trajectory/frames' | 'frame/thumbnails'> & FramesHost;

export class Pictures {
  readonly #host: PicturesHost;
  readonly #frames: Frames;
  readonly #hashes = new Map<string, string | undefined>();
  readonly #asked = new Set<string>();
  #run = '';
  #wanted: readonly string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** There are new ones. */
  changed: () => void = () => undefined;

  constructor(host: PicturesHost) {
    this.#host = host;
    this.#frames = new Frames(host);
    this.#frames.changed = () => this.changed();
  }
  open(run: string): void {
    this.#run = run;
    this.#hashes.clear();
    this.#asked.clear();
    this.#frames.open(run, `${run}/frames`);
  }
  /** URI of a trajectory's picture, where it is known already. */
  of(rollout: string): string | undefined {
    const hash = this.#hashes.get(rollout),
      thumb = hash === undefined ? undefined : this.#frames.thumb(hash);
    return thumb && 'uri' in thumb ? thumb.uri : undefined;
  }
  /** Forgets the picture of a running rollout, which has another last screen by now. */
  forget(rollout: string): void {
    this.#hashes.delete(rollout);
    this.#asked.delete(rollout);
  }
  want(rollouts: readonly string[]): void {
    this.#wanted = rollouts;
    this.#timer ??= setTimeout(() => this.#ask(), restMs);
  }
  moving(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), restMs);
  }
  #ask(): void {
    this.#timer = undefined;
    const run = this.#run,
      rollouts = this.#wanted.filter((r) => !this.#asked.has(r));
    if (rollouts.length === 0 || run === '') return;
    for (const r of rollouts) this.#asked.add(r);
    this.#host.request('trajectory/frames', { run, rollouts: rollouts.slice(0, 200) }).then(
      ({ frames }) => {
        if (run !== this.#run) return;
        for (const r of rollouts) this.#hashes.set(r, frames[r]);
        this.changed();
      },
      () => {
        // The table does without them; they are asked for again when they come into view again.
        for (const r of rollouts) this.#asked.delete(r);
      },
    );
  }
}
