/** A desktop and the surroundings of a person's session, on virtual time. */
import { StudioError, id, type Action, type DesktopId, type Frame } from '../../../runtime/domain/index.js';
import type { Change, Desktop, DesktopEvent, DesktopInput, SettleReport } from '../../../runtime/cluster/types.js';
import type { SessionHost } from '../../../runtime/human/controlSession.js';
import type { ControlState } from '../../../runtime/protocol/types.js';
import type { VirtualClock } from '../rollout/virtualClock.js';

/** A small screen whose colour is what was drawn last; it comes to rest `settleMs` after input. */
export class Screen implements Desktop {
  readonly id = id<DesktopId>('d');
  readonly provider = 'local';
  readonly screen = { width: 8, height: 8 };
  readonly log: string[] = [];
  colour = 1;
  settleMs = 10;
  lost: StudioError | undefined;
  readonly #listeners = new Set<(e: DesktopEvent) => void>();
  readonly #drawn = new Set<() => void>();
  readonly #clock: VirtualClock;
  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }
  observe(): Promise<Frame> {
    return this.#answer({ ...this.screen, data: Buffer.alloc(256, this.colour), capturedAt: this.#clock.now() });
  }
  async perform(a: Action): Promise<void> {
    await this.#answer(undefined);
    this.log.push(a.type);
  }
  async input(events: readonly DesktopInput[]): Promise<void> {
    await this.#answer(undefined);
    for (const e of events) {
      if (e.type !== 'move') this.log.push(e.type === 'key' ? `${e.key}${e.down ? '' : ' up'}` : e.type);
      if (e.type === 'button' && !e.down) this.draw(this.colour + 1);
    }
  }
  async settle(): Promise<SettleReport> {
    await this.#clock.sleep(this.settleMs);
    await this.#answer(undefined);
    return { settled: true, ms: this.settleMs, detector: 'exact' };
  }
  changes(signal: AbortSignal): Promise<Change> {
    return this.#answer({
      drawn: new Promise<void>((r) => {
        this.#drawn.add(r);
        signal.addEventListener('abort', () => {
          r();
        });
      }),
    });
  }
  draw(colour: number): void {
    this.colour = colour;
    for (const d of this.#drawn) d();
    this.#drawn.clear();
  }
  lose(): void {
    this.lost = new StudioError('desktop.lost', 'gone', 'wait');
    for (const l of this.#listeners) l({ type: 'lost', error: this.lost.error });
  }
  exec(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  spawn(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  readFile(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  writeFile(): Promise<never> {
    return Promise.reject(new Error('unused'));
  }
  onEvent(l: (e: DesktopEvent) => void): () => void {
    this.#listeners.add(l);
    return () => this.#listeners.delete(l);
  }
  #answer<T>(v: T): Promise<T> {
    return this.lost ? Promise.reject(this.lost) : Promise.resolve(v);
  }
}
/** Names a screen by its colour. */
export const frames = {
  put: (f: Frame) => Promise.resolve({ width: f.width, height: f.height, hash: `colour ${f.data[0]}` }),
  get: () => Promise.reject(new Error('unused')),
  read: () => Promise.reject(new Error('unused')),
};

/** What a session tells its surroundings. */
export function hosted(clock: VirtualClock): SessionHost & { states: ControlState[]; forgotten: number; ends: number } {
  return {
    clock,
    states: [],
    forgotten: 0,
    ends: 0,
    broadcast(s) {
      this.states.push(s);
    },
    log: () => undefined,
    ended() {
      this.ends++;
    },
    forget() {
      this.forgotten++;
    },
  };
}
