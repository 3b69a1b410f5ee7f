import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GLYPH_SPEC, READER_1_SPEC, READER_2_SPEC, READER_SPEC } from '../../../runtime/domain/index.js';
import { specFor } from '../../../runtime/run/backends/embedded.js';
import { readCheckpoint, writeCheckpoint } from '../../../runtime/trainer/checkpoint.js';

describe('the network that a run goes on with', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'spec-'));
  });
  afterAll(() => rm(dir, { recursive: true }));
  const checkpoint = async (policy: string): Promise<string> => {
    const to = join(dir, policy);
    await writeCheckpoint(to, { policy, layout: 'x', values: {} }, {});
    return to;
  };

  it('is that of its checkpoint: that of version 0.1 knows words by number, the first that read not what is beside one, the second no part of a cell’s name', async () => {
    expect(await specFor(await checkpoint('glyph-2'))).toBe(GLYPH_SPEC);
    expect(await specFor(await checkpoint('reader-1'))).toBe(READER_1_SPEC);
    expect(await specFor(await checkpoint('reader-2'))).toBe(READER_2_SPEC);
    expect(await specFor(await checkpoint('reader-3'))).toBe(READER_SPEC);
  });
  it('is the one that reads without a checkpoint; of an unknown or damaged one it says so when it is read', async () => {
    expect(await specFor(undefined)).toBe(READER_SPEC);
    const other = await checkpoint('glyph-1');
    expect(await specFor(other)).toBe(READER_SPEC);
    await expect(readCheckpoint(other, { policy: READER_SPEC.id, layout: 'x' })).rejects.toThrow(/glyph-1/);
    await writeFile(join(other, 'manifest.json'), '{');
    expect(await specFor(other)).toBe(READER_SPEC);
  });
});
