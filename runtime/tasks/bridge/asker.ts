import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../domain/index.js';
import type { Message } from './said.js';

/**
 * Answers an evaluator's question about the desktop; bytes as a Buffer. When it rejects, the job rejects with the same
 * error.
 */
export type Answer = (name: string, what: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** A worker, and the folder in which it reads answers. */
interface Asked {
  readonly child: ChildProcess;
  readonly jobs: string;
}

/** Sends a worker one message. */
export const say = (w: Asked, message: unknown): void => void w.child.stdin!.write(`${JSON.stringify(message)}\n`);

/** Answers what a worker asks in a job, one thing after the other. */
export class Asker {
  asking = false;
  /** The first answer that could not be given: the job fails with it, whatever the evaluator makes of that. */
  failure: unknown;
  readonly #w: Asked;
  readonly #answer: Answer;

  constructor(w: Asked, answer: Answer) {
    this.#w = w;
    this.#answer = answer;
  }

  async ask(name: string, what: Message): Promise<void> {
    this.asking = true;
    try {
      const a = (await this.#answer(name, what)) ?? null;
      say(this.#w, Buffer.isBuffer(a) ? { file: await handed(this.#w, a) } : { answer: a });
    } catch (e) {
      this.failure ??= e;
      say(this.#w, { fault: messageOf(e) });
    } finally {
      this.asking = false;
    }
  }
}

/**
 * Puts an answer of bytes where the worker reads it, and deletes it: 64 MB in a line would hold this thread. Made anew
 * under a name that nobody knows, because a worker can write to this folder, too.
 */
async function handed(w: Asked, data: Buffer): Promise<string> {
  const path = join(w.jobs, `answer-${randomUUID()}`);
  await writeFile(path, data, { flag: 'wx', mode: 0o600 });
  return path;
}
