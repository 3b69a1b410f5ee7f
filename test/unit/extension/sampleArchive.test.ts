import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { decodePng } from '../../../runtime/data/store/png.js';
import { openSample } from '../../../extension/model/sampleArchive.js';
import { savedRuns } from '../../../extension/model/savedRuns.js';
import { runFiles } from '../../../extension/model/runFiles.js';

const dirs: string[] = [];
const scratch = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'dart-sample-'));
  dirs.push(dir);
  return dir;
};
afterEach(() => {
  for (const d of dirs.splice(0)) rmSync(d, { recursive: true, force: true });
});

function archive(head: object, content: Buffer): Buffer {
  const text = Buffer.from(JSON.stringify(head)),
    length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return brotliCompressSync(Buffer.concat([length, text, content]));
}

describe('the sample run that is shipped', () => {
  it('is a whole run: listed without a runtime, its evaluations known, screens by the hash of their pixels', async () => {
    const into = scratch(),
      sample = await openSample(readFileSync('media/sample.br')),
      dir = await sample.unpack(into),
      [run, ...others] = await savedRuns([dir], runFiles);
    expect(others).toEqual([]);
    expect(run).toMatchObject({ id: sample.run, name: 'sample', state: 'finished' });
    expect(run!.rollouts).toBeGreaterThanOrEqual(100);
    expect(run!.evals.length).toBeGreaterThanOrEqual(3);
    expect(run!.evals.at(-1)!).toBeGreaterThan(run!.evals[0]!);
    expect(readdirSync(join(dir, 'journal')).length).toBeGreaterThan(0);
    // Nothing of the machine it was made on.
    expect(JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8'))).toMatchObject({
      config: { store: { dir: 'runs' } },
    });
    const screens = readdirSync(join(dir, 'frames'), { recursive: true })
      .map(String)
      .filter((f) => f.endsWith('.png'));
    expect(screens.length).toBeGreaterThan(40);
    for (const f of screens.slice(0, 8)) {
      const { width, height, rgb } = await decodePng(readFileSync(join(dir, 'frames', f))),
        size = Buffer.alloc(8);
      size.writeUInt32LE(width, 0);
      size.writeUInt32LE(height, 4);
      expect(createHash('sha256').update(size).update(rgb).digest('hex')).toBe(f.slice(3, -4));
    }
    expect(readdirSync(into)).toEqual([sample.run]);
  });
  it('takes little room in the VSIX', () => {
    expect(statSync('media/sample.br').size).toBeLessThanOrEqual(230_000);
  });
  it('writes nothing outside of its folder', async () => {
    const into = scratch(),
      one = Buffer.from('x');
    await expect(openSample(archive({ run: '../up', files: [], frames: [] }, one))).rejects.toThrow('no name');
    for (const path of ['../x', '/x', 'a/../../x', '.bashrc', 'a//b', ''])
      await expect(
        openSample(archive({ run: 'r', files: [{ path, bytes: 1 }], frames: [] }, one)).then((s) => s.unpack(into)),
        path,
      ).rejects.toThrow('no file');
    await expect(
      openSample(archive({ run: 'r', files: [], frames: [{ hash: '../../x', width: 1, height: 1 }] }, one)).then((s) =>
        s.unpack(into),
      ),
    ).rejects.toThrow('hash');
    expect(existsSync(join(into, 'r'))).toBe(false);
  });
});
