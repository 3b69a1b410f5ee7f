import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../../runtime/domain/index.js';
import { mutatedFile } from './mutate.js';

/** Where a target has its files. */
export class Folder {
  path = '';
  async open(): Promise<void> {
    this.path = await mkdtemp(join(tmpdir(), 'dart-fuzz-'));
  }
  async close(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
const filesIn = async (dir: string): Promise<string[]> =>
  (await readdir(dir, { recursive: true, withFileTypes: true }))
    .filter((e) => e.isFile())
    .map((e) => join(e.parentPath, e.name).slice(dir.length + 1))
    .sort();

/** A copy of a folder with one of its files changed. */
export async function changedCopy(r: Random, from: string, to: string): Promise<string> {
  await rm(to, { recursive: true, force: true });
  await cp(from, to, { recursive: true });
  const name = r.pick(await filesIn(to)),
    bad = mutatedFile(r, name, await readFile(join(to, name)));
  await writeFile(join(to, name), bad);
  return `${name}\n${bad.subarray(0, 4000).toString('latin1')}`;
}
