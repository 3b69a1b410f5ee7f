import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

interface Stamp {
  readonly commit: string;
  readonly at: string;
}
const { stamp, stampFile } = (await import(pathToFileURL('scripts/lib/stamp.mjs').href)) as {
  stamp(): Stamp;
  stampFile(file: string, made: Stamp, more?: object): void;
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'stamp-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

describe('the stamp of a result', () => {
  it('is the commit, and whether there are changes to it, and the time', () => {
    expect(stamp().commit).toMatch(/^([0-9a-f]{7,}(, with changes)?|unknown)$/);
    expect(Date.parse(stamp().at)).toBeGreaterThan(Date.now() - 60_000);
  });
  it('goes before what was measured since then', async () => {
    const file = join(dir, 'r.json'),
      made = { commit: 'abc1234', at: new Date(Date.now() - 1000).toISOString() };
    await writeFile(file, JSON.stringify({ ok: true, commit: 'older' }));
    stampFile(file, made, { versions: { torch: '2' } });
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ ...made, versions: { torch: '2' }, ok: true });
  });
  it('leaves the result of an earlier run, and one that is not there', async () => {
    const file = join(dir, 'r.json'),
      made = stamp();
    stampFile(join(dir, 'none.json'), made);
    await writeFile(file, '{"ok":true}');
    await utimes(file, 1, 1);
    stampFile(file, made);
    expect(await readFile(file, 'utf8')).toBe('{"ok":true}');
  });
});
