import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { commitOf } from '../../../runtime/cli/checkout.js';
import { withDir } from '../../helpers/data/manager.js';

const git = (dir: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e@x', ...args], { cwd: dir, encoding: 'utf8' }).trim();

/** A checkout with a bundle in dist/ and one source. */
function checkout(dir: string): { bundle: string; source: string; commit: string } {
  const source = join(dir, 'runtime/main.ts');
  for (const d of ['dist', 'runtime']) mkdirSync(join(dir, d), { recursive: true });
  writeFileSync(source, '1\n');
  git(dir, 'init', '-q');
  git(dir, 'add', '.');
  git(dir, 'commit', '-q', '-m', 'one');
  return { bundle: join(dir, 'dist/runtime.js'), source, commit: git(dir, 'rev-parse', '--short', 'HEAD') };
}

describe('the commit of a bundle', () => {
  it('is that of its checkout, and says where sources of the runtime differ', () =>
    withDir(async (dir) => {
      const { bundle, source, commit } = checkout(dir);
      expect(await commitOf(bundle)).toBe(commit);
      writeFileSync(join(dir, 'notes'), 'not a source');
      expect(await commitOf(bundle)).toBe(commit);
      writeFileSync(source, '2\n');
      expect(await commitOf(bundle)).toBe(`${commit}, with changes`);
    }));
  it('is none of a packaged runtime, in somebody else’s checkout neither', () =>
    withDir(async (dir) => {
      expect(await commitOf(join(dir, 'dist/runtime.js'))).toBeUndefined();
      checkout(dir);
      const inside = join(dir, 'extensions/dart-studio/dist');
      mkdirSync(inside, { recursive: true });
      expect(await commitOf(join(inside, 'runtime.js'))).toBeUndefined();
    }));
});
