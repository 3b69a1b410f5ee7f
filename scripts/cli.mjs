// `npm run -s cli -- ARGS`: the runtime's command line from a checkout, built when a source is newer than the bundle.
import { ensureBuilt } from './lib/ensure.mjs';
import { spawn } from 'node:child_process';

await ensureBuilt();
const child = spawn(process.execPath, ['--enable-source-maps', 'dist/runtime.js', ...process.argv.slice(2)], {
  stdio: 'inherit',
  // Messages name commands as they are typed here.
  env: { DART_STUDIO_CALLED: 'npm run -s cli --', ...process.env },
});
for (const s of ['SIGINT', 'SIGTERM'])
  process.on(s, () => {
    if (s === 'SIGTERM') child.kill(s);
  });
child.on('exit', (code, signal) => process.exit(signal ? 128 : (code ?? 1)));
