import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setupParameters } from '../../../runtime/tasks/taskFile.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { engine, rule, verify } from '../../helpers/tasks/engine.js';

describe('commands of a task file', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tasks-host-'));
  });
  afterEach(() => rm(dir, { recursive: true }));

  it('run in the desktop, wherever they stand in the file, and none of them on the host', async () => {
    const mark = join(dir, 'mark'),
      touch = `touch ${mark}`,
      step = (type: keyof typeof setupParameters, parameters: unknown): unknown => ({ type, parameters }),
      verified = { command: touch, shell: true, verification: { command_success: touch }, max_wait_time: 0 },
      steps = [
        step('execute', { command: touch, shell: true }),
        step('command', { command: ['touch', mark] }),
        step('launch', { command: touch, shell: true }),
        step('launch', { command: ['touch', mark] }),
        step('execute_with_verification', verified),
      ];
    // Every step that takes a command is here.
    const taking = Object.entries(setupParameters).flatMap(([type, p]) => ('command' in p.shape ? [type] : []));
    expect(new Set(steps.map((s) => (s as { type: string }).type))).toEqual(new Set(taking));
    const d = new FakeDesktop(),
      task = taskOf(
        {
          func: ['exact_match', 'exact_match'],
          result: ['vm_command_line', 'vm_command_error'].map((type) => ({ type, command: touch, shell: true })),
          expected: [rule({ expected: '' }), rule({ expected: '' })],
          postconfig: steps,
        },
        steps,
      );
    await engine.setup(task, d, never);
    await verify(task, d);
    expect(d.log.filter((l) => l.includes(touch)).length).toBeGreaterThanOrEqual(2 * steps.length + 2);
    expect(existsSync(mark)).toBe(false);
  });
});
