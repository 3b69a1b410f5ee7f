/** Live pictures of the desktop that a page shows, of one at a time. */
import type { ToPage } from '../../webview/protocol.js';
import type { Runtime } from '../runtimePort.js';

export class LivePictures {
  readonly #runtime: Pick<Runtime, 'watch'>;
  readonly #show: (m: Omit<Extract<ToPage, { type: 'screen' }>, 'boot'>) => void;
  readonly #failed: (words: string) => void;
  #stop: (() => void) | undefined;

  constructor(
    runtime: Pick<Runtime, 'watch'>,
    show: (m: Omit<Extract<ToPage, { type: 'screen' }>, 'boot'>) => void,
    failed: (words: string) => void,
  ) {
    this.#runtime = runtime;
    this.#show = show;
    this.#failed = failed;
  }
  /** Watches a desktop, unless it is watched already. The client watches again after a reconnect. */
  start(desktop: string, maxFps: number): void {
    if (this.#stop) return;
    let screen = { width: 0, height: 0 },
      ended = false;
    const stop = this.#runtime.watch(
      desktop,
      { maxFps },
      {
        start: (s) => {
          screen = s;
        },
        // A copy: VS Code passes plain typed arrays on as they are, but a Node Buffer as JSON, and a view with the
        // whole buffer behind it.
        patch: ({ x, y, width, height, at }, png) =>
          this.#show({ type: 'screen', x, y, width, height, at, png: new Uint8Array(png), screen }),
        end: (error) => {
          if (error) this.#failed(`pictures of ${desktop} ended: ${error.message}`);
          ended = true;
          if (this.#stop !== undefined && this.#stop === stop) this.stop();
        },
      },
    );
    if (ended) stop();
    else this.#stop = stop;
  }
  stop(): void {
    const stop = this.#stop;
    this.#stop = undefined;
    stop?.();
  }
}
