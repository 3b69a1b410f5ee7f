import { existsSync, readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { scratch } from '../../helpers/files/hostile.js';

const { licenseOf, noticeOf, onnxNotices, thirdPartyNotices } = (await import(
  pathToFileURL('scripts/lib/notices.mjs').href
)) as {
  licenseOf(manifest: object): string;
  noticeOf(dir: string, extra?: string[]): { title: string; text: string };
  onnxNotices(): string[];
  thirdPartyNotices(packages: string[], native: boolean): string;
};

describe('notices of what is shipped', () => {
  it('name the licence in whichever form a package says it', () => {
    expect(licenseOf({ license: 'MIT' })).toBe('MIT');
    expect(licenseOf({ license: { type: 'ISC', url: 'x' } })).toBe('ISC');
    expect(licenseOf({ licenses: [{ type: 'MIT' }, { type: 'Apache-2.0' }] })).toBe('MIT OR Apache-2.0');
    expect(licenseOf({})).toBe('');
    expect(noticeOf('node_modules/ssh2').text).toMatch(/^ssh2 [\d.]+ \(MIT\)\n\n.*Copyright/s);
  });

  it('hold every licence and NOTICE file, and refuse a package that says none', () =>
    scratch(async (dir) => {
      mkdirSync(join(dir, 'a'));
      for (const [f, text] of [
        ['package.json', '{"name":"a","version":"1.0.0","license":"Apache-2.0"}'],
        ['LICENSE-APACHE', 'apache text'],
        ['NOTICE', 'notice text'],
        ['ThirdPartyNotices.txt', 'parts text'],
        ['license.js', 'code'],
      ])
        writeFileSync(join(dir, 'a', f!), text!);
      expect(noticeOf(join(dir, 'a')).text).toBe('a 1.0.0 (Apache-2.0)\n\napache text\n\nnotice text\n\nparts text');
      writeFileSync(join(dir, 'a', 'package.json'), '{"name":"a","version":"1.0.0"}');
      expect(() => noticeOf(join(dir, 'a'))).toThrow(/does not say/);
    }));

  it("credit ONNX Runtime's native parts, of the version that is installed", () => {
    for (const f of onnxNotices()) expect(existsSync(f), f).toBe(true);
    const text = thirdPartyNotices([], true);
    for (const part of ['Microsoft Corporation', 'protobuf', 'Eigen', 'FlatBuffers', 'abseil'])
      expect(text.toLowerCase(), part).toContain(part.toLowerCase());
    expect(thirdPartyNotices([], false)).not.toContain('Eigen');
    expect(text).not.toMatch(/\((undefined|null|)\)\n/);
  });

  it('are complete for every package that this one depends on', () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const name of Object.keys(dependencies))
      if (!name.startsWith('onnxruntime'))
        expect(noticeOf(`node_modules/${name}`).text, name).toMatch(/copyright|public domain|permission|licen/i);
  });
});
