import { describe, expect, it } from 'vitest';
import { countsByNamespace, processLimit } from '../../../runtime/cluster/providers/processLimit.js';
import { hasRoom } from '../../../runtime/cluster/providers/local.js';
import { sandboxCommand } from '../../../runtime/cluster/providers/sandboxCommand.js';

const SPEC = { screen: { width: 640, height: 400 }, memoryMb: 512, pids: 256 };
const facts = (kernel: string, o: { root?: boolean; scopes?: boolean; memory?: boolean } = {}) => ({
  kernel,
  root: o.root ?? false,
  scopes: () => Promise.resolve({ tasks: o.scopes ?? false, memory: o.memory ?? false }),
  threads: () => Promise.resolve(321),
});

describe('how the processes of a sandbox are limited', () => {
  it('by its user namespace, where the kernel counts by it', () => {
    expect(['5.14.0-427.el9', '6.1.0-18-amd64', '6.18.44', '10.0'].map(countsByNamespace)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(['5.13.19', '5.10.0-28-amd64', '4.18.0-553.el8'].map(countsByNamespace)).toEqual([false, false, false]);
  });

  it("before that: root's sandboxes have their own uid, a user's get a scope, else room beside all that the user runs", async () => {
    expect(await processLimit(256, 512, facts('6.1.0'))).toMatchObject({ counts: 'namespace', max: 256, prefix: [] });
    expect(await processLimit(256, 512, facts('5.10.0', { root: true }))).toMatchObject({
      counts: 'namespace',
      max: 256,
    });
    const scoped = await processLimit(256, 512, facts('5.10.0', { scopes: true }));
    expect(scoped.counts).toBe('scope');
    expect(scoped.prefix.join(' ')).toMatch(/^systemd-run --user --scope .*-p TasksMax=256 --$/);
    // As many as the user runs already must never keep a desktop from starting.
    const shared = await processLimit(256, 512, facts('5.10.0'));
    expect(shared).toMatchObject({ counts: 'user', prefix: [] });
    expect(shared.max).toBeGreaterThanOrEqual(321 + 256);
  });

  it("its memory by a scope where systemd's controller is delegated, else each process and what starts beside it", async () => {
    const scoped = await processLimit(256, 512, facts('6.1.0', { scopes: true, memory: true }));
    expect(scoped).toMatchObject({ counts: 'namespace', memory: true, max: 256 });
    expect(scoped.prefix.join(' ')).toMatch(/^systemd-run --user --scope .*-p MemoryMax=512M -p MemorySwapMax=0 --$/);
    const command = (memory: boolean): Promise<string> =>
      processLimit(256, 512, facts('6.1.0', { scopes: memory, memory })).then((processes) =>
        sandboxCommand({
          name: 'local-1',
          rootfs: '/rootfs',
          spec: SPEC,
          diskMb: 64,
          cgroup: undefined,
          uid: 1000,
          stateDir: '/dev/shm/x',
          processes,
        }).args.join(' '),
      );
    expect(await command(true)).toMatch(/systemd-run .* bwrap /);
    expect(await command(true)).not.toContain('--as=');
    expect(await command(false)).toContain(`--as=${1024 << 20}`);
    // 8 GB hold 15 desktops of 512 MB that may all grow, whatever they use now; the first may always start.
    const free = (running: number): number => (8192 - running * 80) * 2 ** 20;
    expect([0, 5, 14, 15, 16, 30].map((n) => hasRoom(512, n, free(n)))).toEqual([true, true, true, true, false, false]);
    expect(hasRoom(512, 0, 0)).toBe(true);
  });

  it.each([0, 1000])('is set inside the namespace, not in front of it (uid %d)', async (uid) => {
    const { args } = sandboxCommand({
      name: 'local-1',
      rootfs: '/rootfs',
      spec: SPEC,
      diskMb: 64,
      cgroup: undefined,
      uid,
      stateDir: '/dev/shm/x',
      processes: await processLimit(256, 512, facts('6.1.0', { root: uid === 0 })),
    });
    const bwrap = args.indexOf('bwrap');
    expect(bwrap).toBeGreaterThan(0);
    expect(args.slice(0, bwrap).join(' ')).not.toMatch(/nproc/);
    const program = args.indexOf('--', bwrap) + 1;
    expect(args[program]).toBe('/usr/bin/prlimit');
    expect(args.slice(program)).toContain('--nproc=256');
  });
});
