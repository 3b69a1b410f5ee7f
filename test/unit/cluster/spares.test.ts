import { describe, expect, it } from 'vitest';
import type { SandboxDesktop } from '../../../runtime/cluster/drivers/desktop.js';
import { Spares } from '../../../runtime/cluster/providers/spares.js';
import type { DesktopSpec } from '../../../runtime/cluster/types.js';

const spec = {} as DesktopSpec;
/** A host that starts a desktop whenever the test says so. */
class Host {
  readonly waiting: ((d: SandboxDesktop | Error) => void)[] = [];
  readonly destroyed: string[] = [];
  readonly #lost = new Map<string, () => void>();
  signal: AbortSignal | undefined;

  spares(wanted: number, atOnce: number): Spares<SandboxDesktop> {
    return new Spares({
      wanted,
      atOnce,
      boot: (_, signal) => {
        this.signal = signal;
        return new Promise((resolve, reject) => {
          this.waiting.push((d) => (d instanceof Error ? reject(d) : resolve(d)));
        });
      },
      destroy: (d) => {
        this.destroyed.push(d.id);
        return Promise.resolve();
      },
    });
  }
  async starts(id: string): Promise<void> {
    this.waiting.shift()!(this.desktop(id));
    await new Promise(setImmediate);
  }
  lose(id: string): void {
    this.#lost.get(id)!();
  }
  desktop(id: string): SandboxDesktop {
    return {
      id,
      isLost: false,
      onEvent: (f: (e: { type: string }) => void) => this.#lost.set(id, () => f({ type: 'lost' })),
    } as unknown as SandboxDesktop;
  }
}

describe('spare desktops', () => {
  it('as many as are wanted are started, at most so many at once, and one is given to who asks for its kind', async () => {
    const one = new Host(),
      slow = one.spares(2, 1);
    slow.refill(spec, 'a');
    slow.refill(spec, 'a');
    expect(one.waiting).toHaveLength(1);
    await one.starts('a1');
    slow.refill(spec, 'a');
    await one.starts('a2');
    slow.refill(spec, 'a');
    expect(one.waiting).toHaveLength(0);
    expect(slow.take('b')).toBeUndefined();
    expect([slow.take('a')?.id, slow.take('a')?.id, slow.take('a')]).toEqual(['a1', 'a2', undefined]);

    const all = new Host(),
      quick = all.spares(3, Infinity);
    quick.refill(spec, 'a');
    quick.refill(spec, 'a');
    expect(all.waiting).toHaveLength(3);
  });

  it('one that is lost is destroyed and given to nobody; the oldest makes room', async () => {
    const host = new Host(),
      s = host.spares(2, 2);
    s.refill(spec, 'a');
    await host.starts('a1');
    await host.starts('a2');
    host.lose('a1');
    expect(host.destroyed).toEqual(['a1']);
    expect([await s.makeRoom(), await s.makeRoom()]).toEqual([true, false]);
    expect(host.destroyed).toEqual(['a1', 'a2']);
    // One that was given away is its user's.
    s.refill(spec, 'a');
    await host.starts('a3');
    expect(s.take('a')?.id).toBe('a3');
    host.lose('a3');
    expect(host.destroyed).toEqual(['a1', 'a2']);
  });

  it('a host that is full means fewer, and they are tried again; after the end none is started', async () => {
    const host = new Host(),
      s = host.spares(1, 1);
    s.refill(spec, 'a');
    host.waiting.shift()!(new Error('full'));
    await s.settled();
    s.refill(spec, 'a');
    expect(host.waiting).toHaveLength(1);
    const ended = s.end();
    expect(host.signal!.aborted).toBe(true);
    await host.starts('a1');
    await ended;
    expect(s.take('a')).toBeUndefined();
    s.refill(spec, 'a');
    expect(host.waiting).toHaveLength(0);
  });
});
