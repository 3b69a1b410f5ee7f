import { describe, expect, it } from 'vitest';
import { FakeDesktop, taskOf } from '../../helpers/tasks/fakeDesktop.js';
import { rule, verify } from '../../helpers/tasks/engine.js';

describe('getters', () => {
  const get = async (result: unknown, expected: unknown, d: FakeDesktop, func = 'exact_match'): Promise<number> =>
    verify(taskOf({ func, result, expected: rule({ expected }) }), d);
  it('vm_command_line is stdout, vm_command_error stderr; line ends are "\\n"', async () => {
    const d = new FakeDesktop(() => ({ stdout: 'out\r\n', stderr: 'err\n', code: 2 }));
    expect(await get({ type: 'vm_command_line', command: 'x' }, 'out\n', d)).toBe(1);
    expect(await get({ type: 'vm_command_error', command: ['x'] }, 'err\n', d)).toBe(1);
  });
  it('a command that cannot be run or prints no text is nothing', async () => {
    expect(await get({ type: 'vm_command_line', command: 'x' }, null, new FakeDesktop(() => 'not found'))).toBe(1);
    const bytes = new FakeDesktop();
    bytes.exec = () =>
      Promise.resolve({ code: 0, stdout: Buffer.from([0xff]), stderr: Buffer.alloc(0), timedOut: false });
    expect(await get({ type: 'vm_command_line', command: 'x' }, null, bytes)).toBe(1);
  });
  it('vm_screen_size, vm_window_size', async () => {
    const d = new FakeDesktop(() => ({
      stdout: '0x1  0 0   0   640  401  vlc.vlc               desktop VLC\n0x2 -1 5 5 10 20 a.B N/A x\n',
    }));
    expect(await get({ type: 'vm_screen_size' }, { width: 640, height: 401 }, d)).toBe(1);
    expect(await get({ type: 'vm_window_size', app_class_name: 'vlc' }, { width: 640, height: 401 }, d)).toBe(1);
    expect(await get({ type: 'vm_window_size', app_class_name: 'gimp' }, null, d)).toBe(1);
  });
  it('list_directory is a tree, nothing for a missing folder', async () => {
    const d = new FakeDesktop(() => ({ stdout: 'f b.txt\0d sub\0f sub/c.txt\0f a b.txt\0' }));
    expect(
      await get(
        { type: 'list_directory', path: '/home/user/dir/' },
        {
          type: 'directory',
          name: 'dir',
          children: [
            { type: 'file', name: 'a b.txt' },
            { type: 'file', name: 'b.txt' },
            { type: 'directory', name: 'sub', children: [{ type: 'file', name: 'c.txt' }] },
          ],
        },
        d,
      ),
    ).toBe(1);
    expect(await get({ type: 'list_directory', path: '/x' }, null, new FakeDesktop(() => ({ code: 1 })))).toBe(1);
  });
  it('configuration files of applications at their places', async () => {
    expect(
      await get(
        { type: 'gimp_config_file', file_name: 'gimprc', dest: 'g' },
        'x',
        new FakeDesktop(undefined, { '/home/user/.config/GIMP/2.10/gimprc': 'x' }),
        'compare_config',
      ),
    ).toBe(1);
    expect(
      await get(
        { type: 'vlc_config', dest: 'vlcrc' },
        'y',
        new FakeDesktop(undefined, { '/home/user/.config/vlc/vlcrc': 'y' }),
        'compare_config',
      ),
    ).toBe(1);
  });
});
