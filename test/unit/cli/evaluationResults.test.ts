import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { finishReplacing, putModel } from '../../../runtime/cli/evaluationResults.js';

let out: string;
beforeEach(async () => {
  out = await mkdtemp(join(tmpdir(), 'results-'));
});
afterEach(() => rm(out, { recursive: true, force: true }));

const LAYOUT = 'pyautogui/screenshot';
/** Results of a model: which part of an evaluation they are of. */
async function made(where: string, model: string, of: string): Promise<void> {
  for (const task of ['one', 'two']) {
    const file = join(out, where, LAYOUT, model, 'chrome', task, 'dart-studio.json');
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, of);
  }
}
const found = (model: string): Promise<string> =>
  readFile(join(out, LAYOUT, model, 'chrome', 'two', 'dart-studio.json'), 'utf8');

describe("a model's folder in OSWorld's layout", () => {
  it('is replaced, and nothing is left beside it', async () => {
    for (const of of ['first', 'second']) {
      await made('.writing', 'm', of);
      expect(await putModel(out, 'm')).toEqual([]);
      expect(await found('m')).toBe(of);
    }
    await finishReplacing(out);
    expect(await readdir(out)).toEqual(['pyautogui']);
  });

  it('is what it was where the new one cannot take its place', async () => {
    await made('', 'm', 'first');
    await expect(putModel(out, 'm')).rejects.toThrow('ENOENT');
    expect(await found('m')).toBe('first');
  });

  it('is whole after a kill at any moment, and is replaced again', async () => {
    // Set aside, and the new one not there yet; there, and the old one half removed; half written.
    await made('.replaced', 'early', 'old');
    await made('', 'late', 'new');
    await made('.replaced', 'late', 'old');
    await rm(join(out, '.replaced', LAYOUT, 'late', 'chrome', 'two', 'dart-studio.json'));
    await made('.writing', 'never', 'half');
    await finishReplacing(out);
    expect([await found('early'), await found('late')]).toEqual(['old', 'new']);
    expect([existsSync(join(out, '.replaced')), existsSync(join(out, '.writing'))]).toEqual([false, false]);
    await made('.writing', 'early', 'newest');
    expect(await putModel(out, 'early')).toEqual([]);
    expect(await found('early')).toBe('newest');
  });

  it("is left alone where it is another program's", async () => {
    await mkdir(join(out, LAYOUT, 'm', 'chrome', 'theirs'), { recursive: true });
    await made('.writing', 'm', 'ours');
    expect(await putModel(out, 'm')).toEqual([expect.stringContaining('another program')]);
    expect(await readdir(join(out, LAYOUT, 'm', 'chrome'))).toEqual(['theirs']);
  });
});
