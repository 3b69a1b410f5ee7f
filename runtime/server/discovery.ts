import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { discoveryFile, type DiscoveryRecord } from '../protocol/version.js';

/** The storage folder, which only its owner can open. */
export async function privateFolder(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (process.platform !== 'win32' && ((await stat(dir)).mode & 0o077) !== 0) await chmod(dir, 0o700);
}

/** Whole or not at all, and never readable for others, also not for a moment. */
export async function writeDiscovery(dir: string, record: DiscoveryRecord): Promise<void> {
  const file = join(dir, discoveryFile),
    tmp = `${file}.${randomBytes(6).toString('hex')}`;
  try {
    const f = await open(tmp, 'wx', 0o600);
    try {
      await f.writeFile(JSON.stringify(record) + '\n');
      await f.sync();
    } finally {
      await f.close();
    }
    await rename(tmp, file);
  } catch (e) {
    await rm(tmp, { force: true });
    throw e;
  }
}

/** Removes the record unless another daemon has written its own since. */
export async function removeDiscovery(dir: string, token: string): Promise<void> {
  const file = join(dir, discoveryFile);
  let found: unknown;
  try {
    found = JSON.parse(await readFile(file, 'utf8'));
  } catch {
    return;
  }
  if ((found as { token?: unknown } | null)?.token === token) await rm(file, { force: true });
}
