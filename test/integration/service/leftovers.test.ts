import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { stateDir } from '../../../runtime/cluster/providers/sandboxRecords.js';
import { createStudioService } from '../../../runtime/service/index.js';
import { whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';
import { statOf } from '../../helpers/machine/processes.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

it.skipIf(why)('a service that starts removes the desktops of a process that was killed', async () => {
  const sandbox = spawn('sleep', ['600'], { stdio: 'ignore' });
  const { started } = statOf(sandbox.pid!)!;
  const record = join(await stateDir(), 'local-leftover-test.json'),
    dir = await mkdtemp(join(tmpdir(), 'dart-leftover-'));
  // Its owner's process id is taken by somebody else by now: the start time differs.
  await writeFile(
    record,
    JSON.stringify({
      id: 'local-leftover-test',
      cgroups: [],
      owner: { pid: process.pid, started: '1' },
      processes: [{ pid: sandbox.pid, started }],
    }),
  );
  const ended = once(sandbox, 'exit');
  let said: (text: string) => void = () => undefined;
  const told = new Promise<string>((r) => {
    said = r;
  });
  const service = createStudioService({
    entry: { file: join(process.cwd(), 'dist/runtime.js') },
    cacheDir: dir,
    log: (_level, text) => {
      said(text);
    },
  });
  try {
    expect(await told).toMatch(/^\d+ desktops of a process that died were removed\.$/);
    expect((await ended)[1]).toBe('SIGKILL');
    expect(existsSync(record)).toBe(false);
  } finally {
    await service.close({ now: true });
    sandbox.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  }
});
