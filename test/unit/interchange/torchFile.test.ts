import { inflateSync } from 'node:zlib';
import { strToU8, unzipSync, zipSync } from 'fflate';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTensors, writeTensors } from '../../../runtime/interchange/torchFile.js';

/** `torch.save({"logp": torch.tensor([-0.25, -1.5, 0.0]), "token_ids": torch.tensor([7, 151645, 3])})` of torch 2.13, packed. */
const OF_TORCH = inflateSync(
  Buffer.from(
    'eNqdVD1v00AYPtuJ4zgBmjZU6cIcJJra+Q5SQbKQB1yJEFQURUKW65jEqhvn7EsRSEiVUIaOsLCg/ogubMBfYIYJJiY2Bibu7HzYTkihJ1lnW+/z4fee102FiQHAcWBh8SAHtJ2uhrTC8NCSpSzoLFkn9EsI8m3MASy7N4SUjmxH7xfUETItl1cd42BkWl0VGQPXdtTjIg/pfL6dwPUurtR6BmR8CC9btoYe+S95GGtTuEaA8TaDd304gqzCIJh4qACFGUNOocYwearrtmUZOjLtgcs/cLqGY3TvmTriIX+zBVMIplvwSjuJGZB9aAxUs+vCq33soD9V3bMHvZnoNU9UhGt9TywzEVsnYhunfcKZRfB6C26OCk0lwf2qb739jRHkav61kxmQwJ0sPLWdIw2px4bjYruyxJCGioTm/c+vr4gwtZImC3YJzaRtqmaZvcGRMUCy1Fh6NP+0qmVi4O4z+IPGEvRKAykQxwYOniPDJp2WJQp0LBMhyyAc493vWyyuYldycCA2SdWOIEvkzckHAD59BB4qwa3tJ8/S+D59AcudKYsoS7cv//mdxITxSZP2dmbyTLxsNs/Pc/g+t9JLEojYy+xUt//PTIknSp/PevsX9z8H6iQA3me7hmPiBLzQSPRxrGWpfKkuCJWqKAr1SrFUFRvVmlApNspCrVGrCNVSrSwURaEh1IRqjbhkqW97eewj77mkvIZNfQYngV9wPv+PRHHB6GdCmPsUWJyaKDwY3GwI/tqHL0xLlCEY21SIYZ0GwbhHgcGkhg/rMQ1mGY+igpkKo97NUWIUFcxHMoTKM2CevigseGC5EOyNB1sepabCsrcmdTeY7cDQhfcvlL/XY9ORYb1p2mD9Z/9vFmd9DOfV+7V/ABgKPg0=',
    'base64',
  ),
);
const PICKLE = 'archive/data.pkl';
/** The file with its pickle changed. */
function changed(file: Uint8Array, change: (pickle: string) => string): Uint8Array {
  const files = unzipSync(file),
    text = Buffer.from(files[PICKLE]!).toString('latin1');
  return zipSync({ ...files, [PICKLE]: Buffer.from(change(text), 'latin1') });
}

/** A ZIP whose directory names one file of 100 kB, not compressed, so many times. */
function overlapping(times: number): Uint8Array {
  const one = Buffer.from(zipSync({ 'archive/a/0000': new Uint8Array(100_000) }, { level: 0 })),
    end = one.length - 22,
    at = one.readUInt32LE(end + 16),
    entry = one.subarray(at, end),
    entries = Array.from({ length: times }, (_, i) => {
      const copy = Buffer.from(entry);
      // It says that it unpacks to nothing.
      copy.writeUInt32LE(0, 24);
      copy.write(String(i).padStart(4, '0'), 46 + 'archive/a/'.length);
      return copy;
    }),
    tail = Buffer.from(one.subarray(end));
  tail.writeUInt16LE(times, 8);
  tail.writeUInt16LE(times, 10);
  tail.writeUInt32LE(times * entry.length, 12);
  return Buffer.concat([one.subarray(0, at), ...entries, tail]);
}

describe('files of torch.save', () => {
  it('reads what torch wrote', () => {
    expect(Object.fromEntries(readTensors(OF_TORCH))).toEqual({
      logp: Float32Array.of(-0.25, -1.5, 0),
      token_ids: Int32Array.of(7, 151645, 3),
    });
  });

  it('reads what it writes, bit by bit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.float({ noNaN: true }), { maxLength: 40 }),
        fc.array(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), { maxLength: 40 }),
        (x, n) => {
          const tensors = { logp: Float32Array.from(x), token_ids: Int32Array.from(n) };
          expect(Object.fromEntries(readTensors(writeTensors(tensors)))).toEqual(tensors);
        },
      ),
    );
  });

  const ours = writeTensors({ logp: Float32Array.of(-1, -2), token_ids: Int32Array.of(1, 2) });
  it.each([
    [
      'a call of a program',
      () => changed(ours, (p) => p.replace('ccollections\nOrderedDict', 'cos\nsystem')),
      /os\.system/,
    ],
    ['another storage', () => changed(ours, (p) => p.replaceAll('FloatStorage', 'HalfStorage')), /torch\.HalfStorage/],
    [
      'a file of elsewhere',
      () => changed(ours, (p) => p.replace('X\x01\0\0\x000', 'X\x01\0\0\0/')),
      /another kind of numbers/,
    ],
    ['a pickle that is cut off', () => changed(ours, (p) => p.slice(0, 60)), /cut off/],
    ['an unknown operation', () => changed(ours, (p) => `${p.slice(0, 2)}i${p.slice(2)}`), /opcode 105/],
    ['marks without end', () => changed(ours, () => '('.repeat(5000)), /a few tensors/],
    ['a stride that is none', () => changed(ours, (p) => p.replace('J\x01\0\0\0\x85\x89', 'N\x89')), /another shape/],
    [
      'a name made of many lists',
      () => changed(ours, (p) => `${p.slice(0, 2)})q\0${'h\0h\0\x86q\0'.repeat(40)}h\0h\0\x93.`),
      /no pickle/,
    ],
    ['no pickle', () => zipSync({ 'archive/version': strToU8('3') }), /no data\.pkl/],
    ['numbers that are missing', () => zipSync({ [PICKLE]: unzipSync(ours)[PICKLE]! }), /lacks the numbers/],
    ['no ZIP', () => strToU8('nothing'), /no file of torch\.save/],
    ['many names of the same bytes', () => overlapping(200), /more than/],
    ['a bomb', () => zipSync({ 'archive/data/0': new Uint8Array(8 << 20) }), /more than 4 MiB/],
    [
      'a number of 64 bits',
      () => {
        const files = unzipSync(ours);
        return zipSync({
          ...files,
          'archive/data/1': Uint8Array.from([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]),
        });
      },
      /beyond 32 bits/,
    ],
  ] as const)('refuses %s', (_, file, why) => {
    expect(() => readTensors(file())).toThrow(why);
  });
});
