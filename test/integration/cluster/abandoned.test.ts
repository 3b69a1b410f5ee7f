import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRecipe, rootfsPath } from '../../../runtime/cluster/imageBuild.js';
import { imageAsset, roomFor } from '../../../runtime/cluster/images.js';
import { processLimit } from '../../../runtime/cluster/providers/processLimit.js';
import { sandboxCommand } from '../../../runtime/cluster/providers/sandboxCommand.js';
import { SandboxProcess } from '../../../runtime/cluster/providers/sandboxProcess.js';
import { recordSandbox, sandboxOf, stateDir } from '../../../runtime/cluster/providers/sandboxRecords.js';
import type { Desktop } from '../../../runtime/cluster/types.js';
import { DEFAULT_IMAGE } from '../../../runtime/domain/index.js';
import { localProvider, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { processes } from '../../helpers/machine/processes.js';
import { endAll, ensureBundle, start } from '../../helpers/run/cli.js';

/**
 * Starts of local desktops that are given up, or whose process is killed, at every moment of the start: nothing may be
 * left, since nobody would ever end it.
 */
const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

const text = (file: string): string => {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
};
const exe = (pid: number): string => {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return '';
  }
};
/** Of the user that runs this test. Others' programs may not be looked into: whose child a sandbox is cannot be told. */
const isOurs = (pid: number): boolean =>
  process.getuid!() === 0 || Number(/^Uid:\t(\d+)/m.exec(text(`/proc/${pid}/status`))?.[1]) === process.getuid!();
/**
 * Processes of a sandbox whose parent is neither of the same sandbox nor a Node.js process: those of nobody. Whatever
 * runs beside this test has its own.
 */
async function orphans(): Promise<string[]> {
  const found: string[] = [];
  for (const p of processes()) {
    if (!isOurs(p.pid) || exe(p.parent).endsWith('/node')) continue;
    if ((await sandboxOf(p.pid)) === undefined || (await sandboxOf(p.parent)) !== undefined) continue;
    found.push(`${p.pid} ${p.what}`);
  }
  return found;
}

describe.skipIf(why)('a start that nobody waits for', () => {
  const p = localProvider();
  let startMs: number, dir: string;
  beforeAll(async () => {
    ensureBundle();
    dir = mkdtempSync(join(tmpdir(), 'dart-abandoned-'));
    const began = performance.now();
    await p.destroy(await p.create(SMALL));
    startMs = performance.now() - began;
  });
  afterAll(async () => {
    await endAll();
    await p.dispose();
    if (dir) rmSync(dir, { recursive: true, force: true });
  });
  const records = async (owner: number): Promise<string[]> => {
    const state = await stateDir();
    return readdirSync(state).filter(
      (f) => f.endsWith('.json') && text(join(state, f)).includes(`"owner":{"pid":${owner},`),
    );
  };

  // 80 times half a start and what it leaves.
  it('given up at every moment: no process, no record', { timeout: 600_000 }, async () => {
    // Two at once, as pools start them: together they are at the places that matter for longer.
    for (let i = 0; i < 80; i++) {
      const stop = new AbortController(),
        starting = [0, 1].map(() =>
          p.create(SMALL, stop.signal).then(
            (d) => p.destroy(d),
            (e: unknown) => {
              expect(e).toMatchObject({ kind: 'cancelled' });
            },
          ),
        );
      await after((startMs * (i % 40)) / 40);
      stop.abort();
      await Promise.all(starting);
    }
    await expect.poll(orphans).toEqual([]);
    expect(await records(process.pid)).toEqual([]);
  });

  it('the process that starts desktops is killed at every moment: what does not end by itself is found by the next one', async () => {
    const killed: number[] = [];
    for (let i = 0; i < 14; i++) {
      const c = start('desktop', 'screenshot', join(dir, `${i}.png`), '--provider', 'local');
      killed.push(c.pid);
      // From the first sandbox on, which is seen by its record.
      while ((await records(c.pid)).length === 0 && process.kill(c.pid, 0)) await after(2);
      await after(startMs * (i / 14));
      c.signal('SIGKILL');
      await c.ended;
    }
    await p.reap();
    await expect.poll(orphans).toEqual([]);
    for (const pid of killed) expect(await records(pid)).toEqual([]);
  });

  it('looked for at every moment of its start, a sandbox of nobody is found: it starts processes meanwhile', async () => {
    const spec = await roomFor(DEFAULT_IMAGE, SMALL),
      agentCode = readFileSync(await imageAsset(DEFAULT_IMAGE, 'overlay/opt/dart/agent.py')),
      plan = {
        rootfs: process.env['DART_STUDIO_ROOTFS'] ?? (await rootfsPath(await readRecipe(DEFAULT_IMAGE)))!,
        spec,
        diskMb: 64,
        cgroup: undefined,
        uid: process.getuid!(),
        stateDir: await stateDir(),
        processes: await processLimit(spec.pids, spec.memoryMb),
      };
    for (let i = 0; i < 40; i++) {
      const name = `local-abandoned-${i}`;
      await recordSandbox(name, [], []);
      // As if written by a process that has ended.
      const file = join(plan.stateDir, `${name}.json`),
        record = JSON.parse(text(file)) as { owner: { started: string } };
      writeFileSync(file, JSON.stringify({ ...record, owner: { ...record.owner, started: '' } }));
      const { child } = new SandboxProcess(sandboxCommand({ ...plan, name }), name, agentCode);
      await after(i / 5);
      for (const pipe of child.stdio) pipe?.destroy();
      await p.reap();
    }
    await expect.poll(orphans).toEqual([]);
  });

  it('a sandbox ends when the line to whoever started it is cut', async () => {
    const d = await p.create(SMALL),
      { process: box } = (
        p as unknown as { boxes: Map<Desktop, { process: { ended: Promise<void>; child: ChildProcess } }> }
      ).boxes.get(d)!;
    box.child.stdin!.destroy();
    await box.ended;
    await expect.poll(orphans).toEqual([]);
    await p.destroy(d);
  });
});
