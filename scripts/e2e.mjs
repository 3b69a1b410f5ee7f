// `npm run e2e [-- VITEST ARGS]`: the packaged extension in a real VS Code workbench. `--prepare` only makes ready what
// the tests need.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt } from './lib/ensure.mjs';
import { cacheRoot, ensureRig, workbenches } from './lib/rig.mjs';
import { hostTarget, packageVsix } from './package.mjs';

/**
 * What test/helpers/workbench/rig.ts reads. A part that lacks has its reason in `missing`, and the tests that need it are
 * skipped with it.
 */
const record = '.cache/e2e/rig.json';

/** Builds, packages and installs; writes the record. Never throws for what cannot be installed here. */
export async function prepareE2e() {
  mkdirSync('.cache/e2e', { recursive: true });
  rmSync(record, { force: true });
  await ensureBuilt();
  const rig = await ensureRig({ browser: true, tools: true, latest: true, min: true });
  const missing = Object.fromEntries(
    Object.entries(rig)
      .filter(([, r]) => !r.ok)
      .map(([k, r]) => [k, r.why]),
  );
  const paths = Object.fromEntries(
    Object.entries(rig)
      .filter(([, r]) => r.ok)
      .map(([k, r]) => [k, r.path]),
  );
  if (!missing.tools) {
    const made = await packageVsix(hostTarget()).catch((e) => {
      missing.vsix = e.message;
    });
    if (made) Object.assign(paths, { vsix: made.file, vsixProblems: made.problems });
    try {
      paths.helper = packageHelper(rig.tools.path);
    } catch (e) {
      missing.helper = e.message;
    }
  }
  for (const [k, why] of Object.entries(missing)) console.error(`End-to-end tests: ${k} is missing (${why}).`);
  writeFileSync(
    record,
    JSON.stringify(
      {
        ...paths,
        missing,
        versions: { min: workbenches.min.vscode, latest: workbenches.latest.vscode },
        cache: resolve(cacheRoot(), '..'),
      },
      null,
      2,
    ) + '\n',
  );
  process.env.DART_STUDIO_E2E = record; // tests started from here need not prepare again
  return missing;
}

function packageHelper(tools) {
  const out = resolve('.cache/e2e/helper.vsix'),
    from = 'test/helpers/extension-host';
  const newest = Math.max(...readdirSync(from).map((f) => statSync(join(from, f)).mtimeMs));
  if (existsSync(out) && statSync(out).mtimeMs > newest) return out;
  const r = spawnSync(
    process.execPath,
    [
      join(tools, 'node_modules/@vscode/vsce/vsce'),
      'package',
      '--no-dependencies',
      '--allow-missing-repository',
      '--skip-license',
      '--out',
      out,
    ],
    { cwd: from, encoding: 'utf8' },
  );
  if (r.status !== 0) throw new Error(`vsce refused the test helper: ${r.stderr.trim().split('\n').at(-1)}`);
  return out;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const args = process.argv.slice(2),
    missing = await prepareE2e();
  if (args.includes('--prepare')) process.exit(Object.keys(missing).length ? 1 : 0);
  process.exit(
    spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--project', 'e2e', ...args], {
      stdio: 'inherit',
    }).status ?? 1,
  );
}
