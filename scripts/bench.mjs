// `npm run bench:NAME [-- --quick] [-- --json FILE]`: bundles test/bench/NAME/main.ts and runs it. `-- --help` prints
// what that file says of its options.
import { bundled } from './lib/bundle.mjs';
import { ensureBuilt } from './lib/ensure.mjs';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const [name, ...args] = process.argv.slice(2);
const entry = `test/bench/${name}/main.ts`;
if (!name || !existsSync(entry)) {
  console.error(`No benchmark '${name ?? ''}': there is no ${entry}.`);
  process.exit(2);
}
if (args.includes('--help') || args.includes('-h')) {
  const [comment = `${entry} says nothing of its options.`] =
    /^(?:\/\/.*\n)+|^\/\*\*[^]*?\*\//m.exec(readFileSync(entry, 'utf8')) ?? [];
  console.log(comment.replace(/^(?:\/\*\*\n|\/\/ ?| \*\/| \* ?)/gm, '').trimEnd());
  process.exit(0);
}
await ensureBuilt();
const file = await bundled(entry, name);
const child = spawn(process.execPath, ['--enable-source-maps', file, ...args], {
  stdio: 'inherit',
});
// Ctrl-C in a terminal reaches the benchmark too, which ends what it started: this waits for it.
for (const s of ['SIGINT', 'SIGTERM'])
  process.on(s, () => {
    if (s === 'SIGTERM') child.kill(s);
  });
child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
