import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { trajectoryFileFormat } from '../../../runtime/domain/trajectoryFile.js';
import { preview } from '../../../runtime/interchange/importer.js';
import { fileJob } from '../../../runtime/service/sharedFile.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-share-'));
});
afterEach(() => rm(dir, { recursive: true }));

const head = JSON.stringify({
    format: trajectoryFileFormat,
    formatVersion: 1,
    framesDir: 'x.frames',
    row: { rollout: 'r', instruction: 'i', task: 't', family: 'f', outcome: 'success' },
  }),
  frame = { hash: 'a'.repeat(64), width: 1, height: 1 },
  step = (index: number): string => JSON.stringify({ index, frame, timings: {}, actions: [] });

describe('a trajectory file that becomes a page', () => {
  const write = async (text: string): Promise<string> => {
    const file = join(dir, 'x.traj.jsonl');
    await writeFile(file, text);
    return file;
  };

  it('is read a line at a time; steps that cannot be used are left out', async () => {
    const file = await write(`${head}\n\n${step(1)}\n{"index":\n${step(0)}\n`),
      link = join(dir, 'link.traj.jsonl');
    await symlink(file, link);
    for (const at of [file, link])
      expect(await fileJob(at, 'to.html')).toMatchObject({
        to: 'to.html',
        framesDir: join(dir, 'x.frames'),
        trajectory: { steps: [{ index: 0 }, { index: 1 }], live: false },
      });
  });

  it.each([
    ['of empty lines', () => `${head}\n${'\n'.repeat(8 << 20)}`, 'has more than 20000 lines'],
    ['of too many steps', () => `${head}\n${`${step(0)}\n`.repeat(5001)}`, 'has more than 5000 steps'],
    ['with a line that is too long', () => `${head}\n${' '.repeat(5 << 20)}\n`, 'longer than 4 MB'],
    ['without a head', () => '\n\n', 'the first line is not the head'],
    ['that is empty', () => '', 'the first line is not the head'],
  ])('%s is refused', async (_, text, why) => {
    await expect(fileJob(await write(text()), 'to.html')).rejects.toMatchObject({
      kind: 'config.invalid',
      message: expect.stringContaining(why) as string,
    });
  });

  it('that is not there is said to be missing', async () => {
    await expect(fileJob(join(dir, 'none.traj.jsonl'), 'to.html')).rejects.toMatchObject({ kind: 'not.found' });
    await expect(fileJob(dir, 'to.html')).rejects.toMatchObject({ kind: 'not.found' });
  });

  it('is refused by an import, too, where it is of empty lines', async () => {
    await write(`${head}\n${'\n'.repeat(1 << 20)}${step(0)}\n`);
    const { problems } = await preview({ path: dir, format: 'traj', options: {} });
    expect(JSON.stringify(problems)).toContain('has more than 20000 lines');
  });
});
