import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { logLines, MOST_LINE } from '../../../runtime/files/logLines.js';
import { mergeWeights } from '../../../runtime/trainer/engine/merge.js';
import { serveEngine } from '../../../runtime/trainer/engine/serve.js';

const fake = vi.hoisted(() => ({ python: '' }));
vi.mock('../../../runtime/trainer/engine/environment.js', () => ({
  ensureEngineEnvironment: () => Promise.resolve({ python: fake.python, folder: '', installed: false }),
}));

/** Lines of the engine's own process, which has no end of them. */
describe("an engine's log", () => {
  const heardOf = async (...chunks: (string | Buffer)[]): Promise<string[]> => {
    const stream = new PassThrough(),
      heard: string[] = [];
    logLines(stream, (l) => heard.push(l));
    for (const c of chunks) stream.write(c);
    stream.end();
    await new Promise((done) => stream.once('end', done));
    return heard;
  };
  it('is heard line by line, also where one is rewritten in place and where a letter is cut in two', async () => {
    const e = Buffer.from('é\n');
    expect(await heardOf('a\nb\rc', 'd\r\ne\n', e.subarray(0, 1), e.subarray(1), 'last')).toEqual([
      ...['a', 'b', 'cd', 'e', 'é', 'last'],
    ]);
  });
  it('has the beginning of a line without end, and what comes after it', async () => {
    const heard = await heardOf('x'.repeat(MOST_LINE), 'y'.repeat(MOST_LINE), 'z'.repeat(5), '\nnext\n');
    expect(heard).toEqual(['x'.repeat(MOST_LINE), 'next']);
  });
});

describe.skipIf(process.platform === 'win32')('an engine that prints a line without end', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'engine-lines-'));
    fake.python = join(dir, 'python');
    // It goes on for ever: only who bounds it ends it.
    const code =
      "process.stderr.write('loading\\n'); (function more() { process.stdout.write('x'.repeat(1e5), more); })();";
    await writeFile(join(dir, 'engine.cjs'), code);
    await writeFile(fake.python, `#!/bin/sh\nexec '${process.execPath}' '${join(dir, 'engine.cjs')}'\n`, {
      mode: 0o755,
    });
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  it('with a line that is too long fails the start', async () => {
    const environment = { python: fake.python, folder: dir, installed: false };
    await expect(serveEngine({ environment, source: dir, args: [] })).rejects.toMatchObject({
      kind: 'engine.unavailable',
      message: expect.stringContaining('it printed a line of more than 65536 bytes') as string,
    });
  });
  it('with a line that is too long fails a merge', async () => {
    const merging = mergeWeights({
      model: 'm',
      weights: 'w',
      to: 't',
      onLine: () => undefined,
      signal: new AbortController().signal,
    });
    await expect(merging).rejects.toMatchObject({
      kind: 'engine.unavailable',
      message: expect.stringContaining('a line of more than 65536 bytes') as string,
    });
  });
});
