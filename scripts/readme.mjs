// `node scripts/readme.mjs`: writes the configuration reference of README.md from the run file's schema; `--check` only
// says whether it is current.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { ensureBuilt } from './lib/ensure.mjs';

await ensureBuilt();
const schema = JSON.parse(execFileSync(process.execPath, ['dist/runtime.js', 'schema'], { encoding: 'utf8' }));
const rows = [];
const walk = (s, at) => {
  for (const [key, v] of Object.entries(s.properties ?? {})) {
    const name = at ? `${at}.${key}` : key;
    if ((v.properties && v.default === undefined) || v.properties) walk(v, name);
    else {
      const kind = v.enum ? v.enum.map((x) => `\`${x}\``).join(' ') : v.type === 'array' ? 'list' : v.type;
      rows.push(
        `| \`${name}\` | ${kind} | ${v.default === undefined ? '' : `\`${JSON.stringify(v.default)}\``} | ${(v.description ?? '').replaceAll('|', '\\|')} |`,
      );
    }
  }
};
walk(schema, '');
const table = [
  '<details><summary>All keys</summary>',
  '',
  '| key | values | default | meaning |',
  '| --- | --- | --- | --- |',
  ...rows,
  '',
  '</details>',
].join('\n');
const readme = readFileSync('README.md', 'utf8');
const next = readme.replace(/(<!-- config:begin -->)[\s\S]*(<!-- config:end -->)/, (_, a, b) => `${a}\n${table}\n${b}`);
if (process.argv.includes('--check')) {
  if (next !== readme) {
    console.error('README.md: the configuration reference is not current; run `node scripts/readme.mjs`.');
    process.exit(1);
  }
} else writeFileSync('README.md', next);
