import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { untilEnded } from '../../../runtime/cli/engineServe.js';
import { checkCommand } from '../../../runtime/cli/evaluatePolicy.js';
import type { StudioError } from '../../../runtime/domain/index.js';
import { serveEngine } from '../../../runtime/trainer/engine/serve.js';

describe.skipIf(process.platform === 'win32')('engine serve', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'engine-serve-'));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));
  const running = (code: string, log: readonly string[] = []): Parameters<typeof untilEnded>[0] => {
    const child = spawn(process.execPath, ['-e', code], { stdio: 'ignore' });
    return {
      process: child,
      log,
      stop: () => {
        child.kill('SIGKILL');
        return Promise.resolve();
      },
    };
  };

  it('ends as a failure where the engine ended by itself, and says what it said last', async () => {
    const never = new AbortController().signal;
    await expect(untilEnded(running('process.exit(0)', ['lost the GPU']), never)).rejects.toMatchObject({
      kind: 'engine.unavailable',
      message: 'The engine ended (exit code 0): lost the GPU',
    });
    await expect(untilEnded(running("process.kill(process.pid, 'SIGKILL')"), never)).rejects.toMatchObject({
      error: { remedy: expect.stringContaining('--micro-batch-tokens') as string },
    });
  });
  it('ends as interrupted where it was stopped', async () => {
    const stop = new AbortController(),
      ended = untilEnded(running('setInterval(() => {}, 1e6)'), stop.signal);
    stop.abort();
    expect(await ended).toBe(130);
  });
  it('advises flags where no run file says anything to the engine', async () => {
    const python = join(dir, 'python');
    await writeFile(python, '#!/bin/sh\necho "CUDA out of memory" >&2\nexit 1\n', { mode: 0o755 });
    const started = (own: boolean): Promise<unknown> =>
      serveEngine({ environment: { python, folder: dir, installed: false }, source: dir, args: [], own });
    const of = async (own: boolean): Promise<string> =>
      started(own).then(
        () => '',
        (e: StudioError) => e.error.remedy,
      );
    expect(await of(false)).toMatch(/Lower --micro-batch-tokens/);
    expect(await of(true)).toMatch(/Lower trainer\.remote\.options\.microBatchTokens/);
  });
});

describe('what evaluate says of task files that cannot run', () => {
  it('is a command about the very folder, image and files, also where a run file names them', () => {
    const c = parseRunFile({
      tasks: { suite: 'folder', dir: '/my tasks', assets: '/mirror' },
      desktops: { image: 'osworld' },
    });
    expect(checkCommand(c)).toBe("dart-studio tasks check '/my tasks' --image osworld --assets /mirror");
  });
});
