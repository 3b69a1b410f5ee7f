import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PRESETS, parseRunFile } from '../../../runtime/config/index.js';
import { folderBytes, runFileText } from '../../../runtime/service/runFacts.js';

describe('the run file of a run', () => {
  const again = (text: string): unknown => parseRunFile(JSON.parse(text));
  it.each(Object.keys(PRESETS))('%s: is short, and makes the same configuration', (preset) => {
    const config = parseRunFile({ preset, seed: 7, tasks: { families: ['desk/press-button'] } } as object),
      text = runFileText(config);
    expect(again(text)).toEqual({ ...config, $schema: 'dart-studio:/run.schema.json' });
    expect(JSON.parse(text)).toMatchObject({ preset, seed: 7, tasks: { families: ['desk/press-button'] } });
    expect(text.length).toBeLessThan(1000);
  });
  it('without a preset, and of another version, is what there is', () => {
    expect(again(runFileText(parseRunFile({ trainer: { lr: 0.1 } })))).toMatchObject({ trainer: { lr: 0.1 } });
    expect(JSON.parse(runFileText({ fromTheFuture: 1 }))).toMatchObject({ fromTheFuture: 1 });
  });
});

describe('what a run takes up', () => {
  it('is the sum of its files, without those that links lead to, and says when it stopped counting', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'dart-bytes-'));
    try {
      await mkdir(join(dir, 'run/frames/ab'), { recursive: true });
      await writeFile(join(dir, 'outside'), Buffer.alloc(5000));
      await symlink(join(dir, 'outside'), join(dir, 'run/link'));
      for (let i = 0; i < 70; i++) await writeFile(join(dir, `run/frames/ab/${i}`), Buffer.alloc(10));
      await writeFile(join(dir, 'run/run.json'), 'x');
      expect(await folderBytes(join(dir, 'run'), 1000)).toEqual({ bytes: 701, whole: true });
      expect((await folderBytes(join(dir, 'run'), 20)).whole).toBe(false);
      expect(await folderBytes(join(dir, 'nowhere'), 20)).toEqual({ bytes: 0, whole: true });
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });
});
