/** Requests that outlive the page that made them (`longMethods`): the page that is built again gets their answers. */
import { longMethods, type PageJob, type PageMethod, type ToPage } from '../../webview/protocol.js';

type Answer = Omit<Extract<ToPage, { type: 'response' }>, 'boot'>;

export class LongRequests {
  /** Open requests by the id that every page knows them by. */
  readonly #open = new Map<number, PageJob & { answer?: Answer }>();
  readonly #send: (a: Answer) => Promise<boolean>;
  readonly #unseen: (j: PageJob, a: Answer) => void;

  /** `send`: false where no page is there. `unseen`: its answer came while none was. */
  constructor(send: (a: Answer) => Promise<boolean>, unseen: (j: PageJob, a: Answer) => void) {
    this.#send = send;
    this.#unseen = unseen;
  }
  get jobs(): PageJob[] {
    return [...this.#open.values()].map(({ id, method, params }) => ({ id, method, params }));
  }
  has(id: number): boolean {
    return this.#open.has(id);
  }
  began(id: number, method: PageMethod, params: unknown): void {
    if ((longMethods as readonly PageMethod[]).includes(method)) this.#open.set(id, { id, method, params });
  }
  async ended(answer: Answer): Promise<void> {
    const job = this.#open.get(answer.id);
    if (!job) return;
    job.answer = answer;
    if (await this.#send(answer)) this.#open.delete(job.id);
    else this.#unseen(job, answer);
  }
  /** A page is there. */
  tell(): void {
    for (const { answer } of this.#open.values()) if (answer) void this.ended(answer);
  }
  clear(): void {
    this.#open.clear();
  }
}
