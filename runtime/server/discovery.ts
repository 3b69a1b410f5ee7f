import { chmod, mkdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../files/replaceFile.js';
import { discoveryFile, type DiscoveryRecord } from '../protocol/version.js';

/** The storage folder, which only its owner can open. */
export async function privateFolder(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (process.platform !== 'win32' && ((await stat(dir)).mode & 0o077) !== 0) await chmod(dir, 0o700);
}

/** Whole or not at all, and never readable for others, also not for a moment. */
export async function writeDiscovery(dir: string, record: DiscoveryRecord): Promise<void> {
  await replaceFile(join(dir, discoveryFile), `${JSON.stringify(record)}\n`, { durable: true, mode: 0o600 });
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
