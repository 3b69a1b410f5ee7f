import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';

/** What the README says can be done can be done. */
const readme = readFileSync('README.md', 'utf8'),
  scripts = (JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }).scripts;

describe('README', () => {
  it('names only npm scripts there are', () => {
    const named = [...readme.matchAll(/npm run (?:-s )?([\w:]+)/g)].map((m) => m[1]!);
    expect(named).toEqual(expect.arrayContaining(['quickstart', 'cli', 'schema', 'lint']));
    expect(named.filter((n) => !(n in scripts))).toEqual([]);
  });
  it('shows run files that are right', () => {
    const blocks = [...readme.matchAll(/```json\n([\s\S]*?)```/g)].map((m) => m[1]!);
    expect(blocks.length).toBeGreaterThan(0);
    for (const b of blocks) expect(() => parseRunFile(JSON.parse(b))).not.toThrow();
  });
  it('names commands and options of the command line', () => {
    const cli = readFileSync('runtime/cli/cli.ts', 'utf8');
    const rows = readme.split('\n').filter((l) => /^\| `(train|evaluate|runs|tasks|desktop|doctor|schema)\b/.test(l));
    expect(rows.length).toBeGreaterThanOrEqual(7);
    for (const row of rows) {
      const cell = row.split(' | ')[0]!;
      for (const [, option] of cell.matchAll(/--([a-z]+)/g)) expect(cli, cell).toContain(`'--${option!}`);
      for (const [, name] of cell.matchAll(/`([a-z]+)/g)) expect(cli, cell).toContain(`command('${name!}')`);
    }
  });
  it('shows pictures that are there', () => {
    for (const [, file] of readme.matchAll(/!\[[^\]]*\]\(([^)]+)\)/g)) expect(existsSync(file!), file).toBe(true);
  });
});
