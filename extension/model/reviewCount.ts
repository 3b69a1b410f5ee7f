/**
 * How many trajectories of the selected run wait to be reviewed: counted only once a person has begun to review,
 * because a run that is not reviewed has hundreds.
 */
import { orUndefined } from '../../runtime/protocol/failures.js';
import * as methods from '../../runtime/protocol/methods.js';
import type { ReviewQueue, RunPath } from '../../runtime/protocol/types.js';
import { Disposables, type Ends } from '../dispose.js';
import type { Runtime } from '../runtimePort.js';
import { throttle, type Later } from '../throttle.js';

const readMs = 3000;
export const waitingIn = (q: ReviewQueue): number => Math.max(0, q.total - q.reviewed);

export class ReviewCount implements Ends {
  readonly #own = new Disposables();
  readonly #runtime: Runtime;
  readonly #say: (waiting: number | undefined) => void;
  readonly #soon: () => void;
  readonly #begun = new Map<RunPath, number>();
  #run: RunPath | undefined;

  constructor(runtime: Runtime, say: (waiting: number | undefined) => void, later?: Later) {
    this.#runtime = runtime;
    this.#say = say;
    this.#soon = this.#own.add(
      throttle(
        () => {
          void this.#read();
        },
        readMs,
        later,
      ),
    );
    this.#own.defer(
      runtime.on(methods.annotationChanged, (a) => {
        if (a.run === this.#run && this.#begun.has(a.run)) this.#soon();
      }),
    );
  }
  show(run: RunPath | undefined): void {
    if (run === this.#run) return;
    this.#run = run;
    this.#say(run === undefined ? undefined : this.#begun.get(run));
  }
  begin(run: RunPath, q: ReviewQueue): void {
    this.#begun.set(run, waitingIn(q));
    if (run === this.#run) this.#say(waitingIn(q));
  }
  dispose(): void {
    this.#own.dispose();
  }

  async #read(): Promise<void> {
    const run = this.#run;
    if (run === undefined || this.#runtime.state !== 'ready') return;
    const q = await orUndefined(
      this.#runtime.request(methods.reviewQueue, { run, limit: 1 }),
      'the next annotation reads the count again',
    );
    if (q) this.begin(run, q);
  }
}
