import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { serveToken, TOKEN_VARIABLE } from '../../../runtime/cli/serveToken.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-token-'));
});
afterEach(() => rm(dir, { recursive: true }));

describe('the token of desktop serve', () => {
  it('comes from a file, or from the environment, which then has it no more', async () => {
    const tokenFile = join(dir, 'token');
    await writeFile(tokenFile, 'of-the-file\n');
    const env = { [TOKEN_VARIABLE]: 'of-the-environment', PATH: '/bin' };
    expect(await serveToken({}, { ...env })).toBe('of-the-environment');
    expect(await serveToken({ token: 'given' }, { ...env })).toBe('given');
    expect(await serveToken({ tokenFile }, env)).toBe('of-the-file');
    expect(env).toEqual({ PATH: '/bin' });
    expect(await serveToken({}, env)).toBeUndefined();
  });

  it('is one word of a file that is there, and is given once', async () => {
    const tokenFile = join(dir, 'token'),
      refused = { kind: 'config.invalid' };
    await expect(serveToken({ tokenFile }, {})).rejects.toMatchObject(refused);
    await expect(serveToken({ tokenFile, token: 'x' }, {})).rejects.toMatchObject(refused);
    for (const text of ['', ' \n', 'two words', 'x'.repeat(5000), 'a\r\nSet-Cookie: b']) {
      await writeFile(tokenFile, text);
      await expect(serveToken({ tokenFile }, {}), JSON.stringify(text.slice(0, 20))).rejects.toMatchObject(refused);
    }
    await expect(serveToken({}, { [TOKEN_VARIABLE]: '' })).rejects.toMatchObject(refused);
  });
});
