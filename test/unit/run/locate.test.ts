import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { locate } from '../../../runtime/run/locate.js';
import { planStart } from '../../../runtime/service/runSession.js';

describe('folders that a run file names', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-locate-'));
    for (const d of ['beside/my-tasks', 'beside/start', 'beside/my-layer', 'here/my-assets', 'here/my-tasks'])
      mkdirSync(join(dir, d), { recursive: true });
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  const file = {
    tasks: { suite: 'folder', dir: 'my-tasks', assets: 'my-assets' },
    warmStart: { from: 'start' },
    desktops: { imageExtra: 'my-layer' },
  } as const;

  it('are beside it, else where the command is, and absolute from then on', () => {
    const { tasks, warmStart, desktops } = locate(parseRunFile(file), [join(dir, 'beside'), join(dir, 'here')]);
    expect([tasks.dir, tasks.assets, warmStart.from, desktops.imageExtra]).toEqual(
      ['beside/my-tasks', 'here/my-assets', 'beside/start', 'beside/my-layer'].map((f) => join(dir, f)),
    );
  });
  it('stay where they are when they are absolute, and are expected beside it when they are nowhere', () => {
    const at = (d: string): unknown =>
      locate(parseRunFile({ tasks: { suite: 'folder', dir: d } }), [join(dir, 'beside')]).tasks.dir;
    expect([at('/some/tasks'), at('none')]).toEqual(['/some/tasks', join(dir, 'beside/none')]);
    expect(locate(parseRunFile({}), [dir])).toEqual(parseRunFile({}));
  });
  it('are found by a runtime that runs elsewhere', () => {
    writeFileSync(join(dir, 'beside', 'x.dart-run.json'), JSON.stringify(file));
    const { config } = planStart({
      text: JSON.stringify(file),
      file: 'beside/x.dart-run.json',
      base: dir,
    });
    expect(config.tasks.dir).toBe(resolve(dir, 'beside/my-tasks'));
  });
});
