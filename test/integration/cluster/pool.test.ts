import { afterAll, describe, expect, it } from 'vitest';
import { createPool } from '../../../runtime/cluster/index.js';
import type { DesktopPool, PoolEvent } from '../../../runtime/cluster/types.js';
import { localProvider, sandboxRecord, sh, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);
const signal = new AbortController().signal;

describe.skipIf(why)('a pool of real desktops', () => {
  const provider = localProvider();
  const pools: DesktopPool[] = [];
  const open = (o: { size: number; spares?: number; hardResetEvery?: number }): DesktopPool => {
    const p = createPool({ provider, spec: SMALL, ...o });
    pools.push(p);
    return p;
  };
  afterAll(async () => {
    await Promise.all(pools.map((p) => p.close()));
    await provider.dispose();
  });

  it('lends fresh desktops, one user each, whatever the last one did', async () => {
    const pool = open({ size: 2, spares: 1, hardResetEvery: 4 });
    let reference: Buffer | undefined;
    const inUse = new Set<string>();
    const episode = async (n: number): Promise<void> => {
      const lease = await pool.lease({ signal });
      const d = lease.desktop;
      expect(inUse.has(d.id)).toBe(false);
      inUse.add(d.id);
      const first = (await d.observe()).data;
      expect(first.equals((reference ??= first)), `first frame of episode ${n}`).toBe(true);
      expect(await sh(d, 'ls -A ~/Desktop')).toBe('');
      expect(lease.resetMs).toBeGreaterThan(0);
      await d.writeFile(`/home/user/Desktop/${n}.txt`, Buffer.from('x'));
      await d.spawn(['xterm']);
      await d.perform({ type: 'click', at: { x: 100, y: 100 } });
      inUse.delete(d.id);
      lease.release();
    };
    await Promise.all(Array.from({ length: 16 }, (_, i) => episode(i)));
    expect(pool.status().waiting).toBe(0);
    await pool.close();
    expect(pool.status().desktops).toEqual([]);
  });

  it('replaces desktops that die in use and idle, and goes on', async () => {
    const pool = open({ size: 1 });
    const replaced: PoolEvent[] = [];
    pool.onEvent((e) => {
      if (e.type === 'replaced') replaced.push(e);
    });
    const a = await pool.lease({ signal });
    kill(a.desktop.id);
    await expect(untilLost(() => a.desktop.exec(['true']))).resolves.toMatchObject({ kind: 'desktop.lost' });
    a.release();
    const b = await pool.lease({ signal });
    expect(b.desktop.id).not.toBe(a.desktop.id);
    b.release();
    const again = new Promise<void>((resolve) => {
      pool.onEvent((e) => {
        if (e.type === 'replaced' && replaced.length >= 2) resolve();
      });
    });
    await new Promise<void>((resolve) => {
      if (pool.status().desktops[0]!.state === 'ready') resolve();
      else
        pool.onEvent((e) => {
          if (e.type === 'state' && e.state === 'ready') resolve();
        });
    });
    kill(pool.status().desktops[0]!.id);
    await again;
    const c = await pool.lease({ signal });
    expect(await sh(c.desktop, 'echo alive')).toBe('alive');
    expect(replaced).toHaveLength(2);
    c.release();
  });

  it('resizes while running', async () => {
    const pool = open({ size: 1 });
    const a = await pool.lease({ signal });
    await pool.resize(2);
    const b = await pool.lease({ signal });
    expect(b.desktop.id).not.toBe(a.desktop.id);
    await pool.resize(1);
    a.release();
    b.release();
    const c = await pool.lease({ signal });
    expect(pool.status().desktops).toHaveLength(1);
    c.release();
  });
});

/** Kill a desktop's sandbox from outside, as a crash would. */
const kill = (id: string): void => {
  process.kill(sandboxRecord(id).processes[0]!.pid, 'SIGKILL');
};

/** Call until it fails; the error. The end of a process takes a moment to be seen. */
async function untilLost(call: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    try {
      await call();
    } catch (e) {
      return e;
    }
  }
}
