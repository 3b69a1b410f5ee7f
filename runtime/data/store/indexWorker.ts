import { messageOf } from '../../domain/index.js';
import { ignoreFailure } from '../../concurrency/failures.js';
import { behindMain, oneByOne, portOf } from '../../concurrency/workerPort.js';
import { workerData } from 'node:worker_threads';
import { IndexEngine, sqlJs } from './indexEngine.js';
import type { IndexOptions } from './indexTrim.js';

export interface IndexPlace {
  readonly journal: string;
  readonly file: string;
  readonly until?: number;
  readonly options?: IndexOptions | undefined;
}
/** Without `place` the worker is started ahead of time; the first message names the run. */
export interface IndexWorkerData {
  readonly role: '__index';
  readonly place?: IndexPlace;
}
export type IndexRequest =
  | { readonly id: number; readonly do: 'advance'; readonly until: number }
  | {
      readonly id: number;
      readonly do: 'query' | 'columns';
      readonly sql: string;
      readonly params: readonly (string | number | null)[];
    }
  | { readonly id: number; readonly do: 'hold'; readonly rollouts: readonly string[] }
  | { readonly id: number; readonly do: 'snapshot' }
  | { readonly id: number; readonly do: 'close'; readonly snapshot: boolean };
export type IndexReply =
  | { readonly id: number; readonly ok: unknown }
  | { readonly id: number; readonly error: string }
  /** Every second while it works on something long. */
  | { readonly alive: true };
/** How often a worker that has work says that it lives, ms. */
export const INDEX_BEAT_MS = 1000;

/** Body of the index worker: answers one request after the other; id 0 answers the start. */
export async function runIndexWorker(): Promise<void> {
  const port = portOf('index');
  behindMain();
  const given = (workerData as IndexWorkerData).place;
  if (!given) ignoreFailure(sqlJs(), 'opening the index asks again and reports it');
  const { journal, file, until, options } = given ?? (await new Promise<IndexPlace>((r) => port.once('message', r)));
  const beating = async <T>(work: Promise<T>): Promise<T> => {
    const beat = setInterval(() => port.postMessage({ alive: true } satisfies IndexReply), INDEX_BEAT_MS);
    try {
      return await work;
    } finally {
      clearInterval(beat);
    }
  };
  let engine: IndexEngine;
  try {
    engine = await beating(IndexEngine.open(journal, file, until, options));
  } catch (e) {
    port.postMessage({ id: 0, error: messageOf(e) } satisfies IndexReply);
    return;
  }
  port.postMessage({ id: 0, ok: engine.status() } satisfies IndexReply);

  const handle = async (r: IndexRequest): Promise<unknown> => {
    switch (r.do) {
      case 'advance':
        await engine.advance(r.until);
        return engine.status();
      case 'query':
        return engine.query(r.sql, r.params);
      case 'columns':
        return engine.columns(r.sql, r.params);
      case 'hold':
        return engine.hold(r.rollouts);
      case 'snapshot':
        return engine.snapshot();
      case 'close': {
        const bytes = r.snapshot ? await engine.snapshot() : 0;
        engine.close();
        return bytes;
      }
    }
  };
  oneByOne<IndexRequest>('index', async (r) => {
    const reply = beating(handle(r)).then(
      (ok): IndexReply => ({ id: r.id, ok }),
      (e: unknown): IndexReply => ({ id: r.id, error: messageOf(e) }),
    );
    port.postMessage(await reply);
    if (r.do === 'close') port.close();
  });
}
