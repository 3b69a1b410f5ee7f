import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { runInterchangeJob } from '../../../runtime/service/interchangeJob.js';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-interchange-job-'));
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const job = { do: 'preview', source: { path: '/nowhere', format: 'auto', options: {} } } as const,
  BEGUN = '{ progress: { done: 0, of: 1 } }';

/** A job that is stopped as soon as it has begun, in a thread that runs this. Its time limits are the test's. */
async function stopped(
  name: string,
  body: string,
): Promise<{
  readonly limits: { readonly over: () => void; ended: boolean }[];
  readonly answer: Promise<unknown>;
}> {
  const file = join(dir, `${name}.mjs`),
    limits: { readonly over: () => void; ended: boolean }[] = [],
    stop = new AbortController();
  await writeFile(file, `import { parentPort as port } from 'node:worker_threads';\n${body}`);
  const answer = runInterchangeJob({ file }, job, {
    signal: stop.signal,
    onProgress: () => {
      stop.abort();
    },
    limit: (_ms, over) => {
      const l = { over, ended: false };
      limits.push(l);
      return () => {
        l.ended = true;
      };
    },
  });
  return { limits, answer };
}

describe('a job that is stopped', () => {
  it('is over when its thread never comes back to its loop: the thread is ended', async () => {
    const terminate = vi.spyOn(Worker.prototype, 'terminate'),
      { limits, answer } = await stopped('endless', `port.postMessage(${BEGUN});\nfor (;;);`);
    await expect.poll(() => limits.length).toBe(1);
    expect(terminate).not.toHaveBeenCalled();
    limits[0]!.over();
    await expect(answer).rejects.toMatchObject({
      kind: 'cancelled',
      error: { remedy: expect.stringContaining('continues after what was already imported') as string },
    });
    expect(await terminate.mock.results[0]!.value).toBe(1);
  });

  it('has its answer when its thread still hears, however long that takes', async () => {
    const { limits, answer } = await stopped(
      'slow',
      `port.postMessage(${BEGUN});
       port.once('message', () => {
         for (const m of [{ stopping: true }, { stopping: true }, { done: 'what came in' }]) port.postMessage(m);
         port.close();
       });`,
    );
    expect(await answer).toBe('what came in');
    expect(limits.map((l) => l.ended)).toEqual([true, true, true]);
  });
});
