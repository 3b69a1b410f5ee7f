import type Docker from 'dockerode';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { makeContainer } from '../../../runtime/cluster/providers/engineContainers.js';

/** An engine that makes a container when the test says so, and removes it. */
class Engine {
  readonly removed: string[] = [];
  /** What it was asked with. */
  signal: AbortSignal | undefined;
  #answer: (c: Docker.Container) => void = () => undefined;

  createContainer(o: Docker.ContainerCreateOptions): Promise<Docker.Container> {
    const { abortSignal: signal } = o;
    this.signal = signal;
    return new Promise((resolve, reject) => {
      this.#answer = resolve;
      // Node's own requests reject so, whatever the reason.
      signal!.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
    });
  }
  makes(id: string): void {
    this.#answer({
      id,
      remove: () => {
        this.removed.push(id);
        return Promise.resolve();
      },
    } as unknown as Docker.Container);
  }
}

describe('a container that the engine makes', () => {
  const engine = new Engine(),
    stop = (): AbortController => new AbortController();
  afterEach(() => {
    engine.removed.length = 0;
    vi.useRealTimers();
  });

  it('is returned to the caller', async () => {
    const making = makeContainer(engine, {}, stop().signal);
    engine.makes('a');
    expect((await making).id).toBe('a');
    expect(engine.removed).toEqual([]);
  });
  it('is removed when its start was cancelled meanwhile, and the reason is the one of the cancel', async () => {
    const s = stop(),
      making = makeContainer(engine, {}, s.signal);
    s.abort(new Error('too late'));
    expect(engine.signal!.aborted).toBe(false);
    engine.makes('b');
    await expect(making).rejects.toThrow('too late');
    expect(engine.removed).toEqual(['b']);
  });
  it('is not waited for without end by one that was cancelled', async () => {
    vi.useFakeTimers();
    const s = stop(),
      making = expect(makeContainer(engine, {}, s.signal)).rejects.toThrow('too late');
    s.abort(new Error('too late'));
    await vi.advanceTimersByTimeAsync(4900);
    expect(engine.signal!.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(200);
    expect(engine.signal!.aborted).toBe(true);
    await making;
  });
  it('is not asked for after a cancel', async () => {
    const s = stop();
    s.abort(new Error('too late'));
    engine.signal = undefined;
    await expect(makeContainer(engine, {}, s.signal)).rejects.toThrow('too late');
    expect(engine.signal).toBeUndefined();
  });
});
