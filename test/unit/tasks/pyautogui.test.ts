import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { FakeDesktop, never, taskOf } from '../../helpers/tasks/fakeDesktop.js';

const FOLDER = resolve('runtime/cluster/images/osworld/overlay/usr/lib/python3/dist-packages');

describe('pyautogui of the image osworld', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-pyautogui-'));
    // Says what it is asked to do, and where pointer and screen are.
    writeFileSync(
      join(dir, 'xdotool'),
      '#!/bin/sh\ncase $1 in\n  getdisplaygeometry) echo 1920 1080 ;;\n  getmouselocation) echo x:100 y:200 screen:0 window:1 ;;\n  *) echo "$@" ;;\nesac\n',
    );
    chmodSync(join(dir, 'xdotool'), 0o755);
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const does = (code: string): string[] =>
    execFileSync('python3', ['-B', '-c', `import pyautogui; pyautogui.PAUSE = 0\n${code}`], {
      encoding: 'utf8',
      env: { PATH: `${dir}:${process.env['PATH']!}`, PYTHONPATH: FOLDER },
    })
      .trim()
      .split('\n');

  it('is what commands of task files get, once an episode', async () => {
    const desktop = new FakeDesktop(),
      command = ['python', '-c', 'import pyautogui; print(pyautogui.size())'],
      ask = { type: 'execute', parameters: { command } };
    await createTaskEngine().setup(taskOf({ func: 'infeasible' }, [ask, ask]), desktop, never);
    expect([...desktop.files.values()]).toEqual([readFileSync(join(FOLDER, 'pyautogui.py'))]);
    expect(desktop.log.filter((l) => l.startsWith('write'))).toHaveLength(1);
  });
  it('moves, drags and clicks from where the pointer is', () => {
    expect(does('pyautogui.moveRel(5, -10); pyautogui.tripleClick(7, 8); pyautogui.drag(20, 0)')).toEqual([
      'mousemove 105 190',
      'mousemove 7 8',
      'click --repeat 3 --delay 60 1',
      'mousedown 1',
      'mousemove 120 200',
      'mouseup 1',
    ]);
  });
  it('types keys and text, and knows the screen', () => {
    expect(
      does(
        'pyautogui.hotkey("ctrl", "s"); pyautogui.write("a b"); print(pyautogui.size(), pyautogui.onScreen(1920, 5))',
      ),
    ).toEqual(['key ctrl+s', 'type --clearmodifiers --delay 12 -- a b', '(1920, 1080) False']);
  });
});
