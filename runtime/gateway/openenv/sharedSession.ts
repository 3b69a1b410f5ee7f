import { jsonReply, type Reply } from '../http.js';
import type { Places } from './places.js';
import { isObject } from '../../foreign/json.js';
import { failed, observedData } from './session.js';
import { NO_EPISODE, type Environment } from './types.js';

/** An episode that is over needs no desktop: its session ends after so long, ms. */
const OVER_MS = 5000;

/** The session of all HTTP clients: OpenEnv's routes name none. Requests are answered one after another. */
export class SharedSession {
  readonly #places: Places;
  readonly #idleMs: number;
  #env: Environment | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #pending = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(places: Places, idleMs: number) {
    this.#places = places;
    this.#idleMs = idleMs;
  }
  state(): Readonly<Record<string, unknown>> {
    return this.#env?.state() ?? NO_EPISODE;
  }
  ask(what: 'reset' | 'step', body: unknown): Promise<Reply> {
    if (!isObject(body)) return Promise.resolve(jsonReply({ detail: 'The body is no JSON object.' }, 422));
    clearTimeout(this.#idle);
    this.#pending++;
    const answer = this.#last.then(() => (what === 'reset' ? this.#reset(body) : this.#step(body)));
    this.#last = answer.finally(() => {
      this.#pending--;
    });
    return answer;
  }
  close(): void {
    clearTimeout(this.#idle);
  }

  async #reset(body: Readonly<Record<string, unknown>>): Promise<Reply> {
    const env = (this.#env ??= this.#places.take());
    if (!env) return jsonReply({ detail: this.#places.full.data['message'] }, 503);
    return this.#observed(() => env.reset(body));
  }
  async #step({ action }: Readonly<Record<string, unknown>>): Promise<Reply> {
    const env = this.#env;
    if (!env) return jsonReply({ detail: 'No episode is running. Send POST /reset to start one.' }, 422);
    return this.#observed(() => env.step(isObject(action) ? action : {}));
  }
  async #observed(ask: () => ReturnType<Environment['reset']>): Promise<Reply> {
    try {
      const seen = await ask();
      this.#endAfter(seen.done ? OVER_MS : this.#idleMs);
      return jsonReply(observedData(seen));
    } catch (e) {
      const { data } = failed(e);
      // Without an episode there is nothing to hold a desktop for.
      this.#endAfter(this.#env?.state()['task'] === null ? 0 : this.#idleMs);
      return jsonReply({ detail: data['message'] }, data['code'] === 'VALIDATION_ERROR' ? 422 : 500);
    }
  }
  #endAfter(ms: number): void {
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => {
      if (this.#pending > 0 || !this.#env) return;
      this.#places.give(this.#env);
      this.#env = undefined;
    }, ms);
    this.#idle.unref();
  }
}
