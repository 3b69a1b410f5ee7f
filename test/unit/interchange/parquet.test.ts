import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { describe, expect, it } from 'vitest';
import { parquetFile } from '../../../runtime/interchange/parquet/library.js';

describe('a Parquet file', () => {
  const types = {
    name: 'STRING',
    at: 'TIMESTAMP',
    seed: 'INT64',
    steps: 'INT32',
    truncated: 'BOOLEAN',
    value: 'DOUBLE',
    reason: 'STRING',
  } as const;
  const rows = [
    {
      name: 'update.loss, "x"\n',
      at: 1_795_347_040_582,
      seed: 2 ** 40,
      steps: 3,
      truncated: 1,
      value: 0.1,
      reason: null,
    },
    { name: '', at: null, seed: null, steps: null, truncated: 0, value: null, reason: null },
    { name: 'ö🙂', at: 0, seed: -1, steps: 2 ** 31, truncated: null, value: Infinity, reason: null },
  ];
  it('has every value as it was, nulls as nulls, and times as times', async () => {
    const bytes = parquetFile(rows, types),
      file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
    expect(await parquetReadObjects({ file })).toEqual([
      {
        name: rows[0]!.name,
        at: new Date(1_795_347_040_582),
        seed: BigInt(2 ** 40),
        steps: 3,
        truncated: true,
        value: 0.1,
        reason: null,
      },
      { name: '', at: null, seed: null, steps: null, truncated: false, value: null, reason: null },
      // 2^31 is no 32-bit number.
      { name: 'ö🙂', at: new Date(0), seed: -1n, steps: null, truncated: null, value: Infinity, reason: null },
    ]);
    expect(Number(parquetMetadata(file).num_rows)).toBe(3);
  });
  it('of no rows has its columns all the same', async () => {
    const file = parquetFile([], types).buffer as ArrayBuffer;
    expect(
      parquetMetadata(file)
        .schema.slice(1)
        .map((s) => s.name),
    ).toEqual(Object.keys(types));
    expect(await parquetReadObjects({ file })).toEqual([]);
  });
});
