import { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { FramePacks, packName } from '../../../runtime/data/store/framePacks.js';
import { framesOfPack, headBytes, recordHead } from '../../../runtime/data/store/packRecord.js';
import { openForeign } from '../../../runtime/files/foreignFile.js';
import { withDir } from '../../helpers/data/manager.js';
import { content, OpenPacks, type Content } from '../../helpers/data/packs.js';

const contents: readonly Content[] = Array.from({ length: 24 }, (_, i) => content(i + 1, 20 + ((i * 37) % 300)));

const which = fc.array(fc.nat(contents.length - 1), { minLength: 1, maxLength: 6 });
const op = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('put' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('remove' as const), which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('compact' as const), share: fc.constantFrom(0.3, 0.5, 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const) }) },
  // Killed while it wrote: so much of a record is there.
  { weight: 2, arbitrary: fc.record({ do: fc.constant('kill' as const), torn: fc.nat(400), of: fc.nat(23) }) },
);

async function allRight(dir: string, live: ReadonlySet<number>, open = new OpenPacks(dir)): Promise<void> {
  for (const [i, c] of contents.entries()) {
    const got = await open.get(c.hash);
    if (live.has(i)) expect(got?.equals(c.bytes), `frame ${i}`).toBe(true);
    else expect(got, `frame ${i}`).toBeUndefined();
  }
}
/** What its writer, which is killed, was adding to its pack. */
async function tear(dir: string, open: OpenPacks, { torn, of }: { torn: number; of: number }): Promise<void> {
  const pack = open.packs.all.find((x) => open.appender.adds(x));
  if (!pack) return;
  const { hash, bytes } = contents[of]!,
    record = Buffer.concat([await recordHead(Buffer.from(hash, 'hex'), bytes), bytes]);
  writeFileSync(join(dir, packName(pack.number)), record.subarray(0, Math.min(torn, record.length - 1)), { flag: 'a' });
}

describe('packs of frames', () => {
  it('what was put is there until it is removed, whatever was killed, compacted and opened in between', () =>
    fc.assert(
      fc.asyncProperty(fc.array(op, { maxLength: 25 }), (ops) =>
        withDir(async (base) => {
          const dir = join(base, 'frames'),
            live = new Set<number>(),
            // Another process, which looks only when it is asked for something.
            reader = new OpenPacks(dir);
          let open = new OpenPacks(dir);
          for (const o of ops) {
            if (o.do === 'put') {
              // As the store does: what is there is not put again.
              await open.packs.known();
              const fresh = [...new Set(o.which)].filter((i) => !open.packs.find(contents[i]!.hash));
              await Promise.all(fresh.map((i) => open.put(contents[i]!)));
              for (const i of o.which) live.add(i);
            } else if (o.do === 'remove') {
              await open.remove(o.which.map((i) => contents[i]!.hash));
              for (const i of o.which) live.delete(i);
            } else if (o.do === 'compact') await open.compact({ share: o.share });
            else {
              if (o.do === 'close') await open.appender.close();
              else await tear(dir, open, o);
              open = new OpenPacks(dir);
            }
            for (const i of live) expect((await reader.get(contents[i]!.hash))?.equals(contents[i]!.bytes)).toBe(true);
          }
          await allRight(dir, live, open);
          await allRight(dir, live);
        }),
      ),
      { numRuns: Number(process.env.RUNS ?? 60) },
    ));

  it('a file that is cut anywhere, or in which any byte is another, loses what was hit and nothing else', () =>
    fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.boolean(),
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        (sealed, cut, where) =>
          withDir(async (base) => {
            const dir = join(base, 'frames'),
              path = join(dir, packName(1)),
              open = new OpenPacks(dir, { packBytes: 1 << 20 });
            for (const c of contents) await open.put(c);
            if (sealed) await open.appender.close();
            const places = contents.map((c) => open.packs.find(c.hash)!),
              hit = Math.floor(where * statSync(path).size);
            if (cut) truncateSync(path, hit);
            else {
              const all = readFileSync(path);
              all[hit]! ^= 0x41;
              writeFileSync(path, all);
            }
            const again = new OpenPacks(dir);
            for (const [i, c] of contents.entries()) {
              const { at, bytes } = places[i]!,
                end = at + headBytes + bytes,
                got = await again.get(c.hash);
              if (cut ? end <= hit : hit < at || hit >= end) expect(got?.equals(c.bytes), `frame ${i}`).toBe(true);
              else expect(got).toBeUndefined();
            }
          }),
      ),
      { numRuns: 80 },
    ));

  it('killed between any two steps of removing and compacting, no frame that counts is lost', () =>
    fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat(contents.length - 1), { minLength: 1 }), fc.boolean(), (gone, closed) =>
        withDir(async (base) => {
          const dir = join(base, 'frames'),
            kept = new Set(contents.keys()),
            copies: string[] = [];
          let open = new OpenPacks(dir);
          for (const c of contents) await open.put(c);
          if (closed) {
            await open.appender.close();
            open = new OpenPacks(dir);
          }
          const snapshot = (): void => {
            const to = join(base, `killed-${copies.length}`);
            cpSync(dir, join(to, 'frames'), { recursive: true });
            copies.push(to);
          };
          for (const i of gone) kept.delete(i);
          await open.remove(gone.map((i) => contents[i]!.hash));
          snapshot();
          const spies = (['add', 'discard'] as const).map((name) => {
            const real = FramePacks.prototype[name] as (...a: unknown[]) => unknown;
            return vi.spyOn(open.packs, name).mockImplementation((...a: unknown[]): never => {
              snapshot();
              return real.apply(open.packs, a) as never;
            });
          });
          await open.compact({ share: 0.9 });
          for (const s of spies) s.mockRestore();
          snapshot();
          for (const at of copies) {
            await allRight(join(at, 'frames'), kept);
            // Whoever goes on compacts what was left, and loses nothing either.
            const next = new OpenPacks(join(at, 'frames'));
            await next.compact({ share: 0.9 });
            await allRight(join(at, 'frames'), kept);
            rmSync(at, { recursive: true });
          }
        }),
      ),
      { numRuns: 15 },
    ));

  it('whatever bytes a file has, looking through it ends, and finds records that lie within it', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            fc.uint8Array({ maxLength: 200 }),
            fc.constant(Buffer.from('DSFr')),
            fc.constant(Buffer.from('DSFi')),
            fc.constant(Buffer.from('DSFe')),
            fc.nat(3).map((i) => ({ whole: contents[i]! })),
          ),
          { maxLength: 30 },
        ),
        (parts) =>
          withDir(async (dir) => {
            await mkdir(dir, { recursive: true });
            const bytes: Buffer[] = [];
            for (const p of parts)
              if ('whole' in p)
                bytes.push(await recordHead(Buffer.from(p.whole.hash, 'hex'), p.whole.bytes), p.whole.bytes);
              else bytes.push(Buffer.from(p));
            const file = join(dir, 'x.pack');
            writeFileSync(file, Buffer.concat(bytes));
            const f = await openForeign(file);
            try {
              const { frames, size } = await framesOfPack(f);
              for (const r of frames) expect(r.at + headBytes + r.bytes).toBeLessThanOrEqual(size);
              const found = new Set(frames.map((r) => r.name.toString('hex')));
              for (const p of parts) if ('whole' in p) expect(found).toContain(p.whole.hash);
            } finally {
              await f.close();
            }
          }),
      ),
      { numRuns: 200 },
    ));
});
