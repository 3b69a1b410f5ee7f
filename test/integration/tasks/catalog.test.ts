import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { FULL_METRICS, OFFERED_GETTERS, OFFERED_METRICS, UNOFFERED } from '../../../runtime/tasks/bridge/catalog.js';
import { EVALUATORS } from '../../../runtime/tasks/bridge/environment.js';

const run = promisify(execFile);
const WHEEL = `desktop_env-${EVALUATORS.version}-py3-none-any.whl`,
  SHA256 = '302831c776141a6710cbe8805c7ee67b27362c06be782765ee21ad3bd340f594';
const LIMIT_MS = 120_000;

/** The pinned wheel (1 MB), from PyPI the first time. Where it cannot be had, the tests here fail. */
async function wheel(): Promise<string> {
  const folder = join(homedir(), '.cache', 'dart-studio', 'peers', 'desktop-env'),
    file = join(folder, WHEEL);
  if (existsSync(file) && (await hashOf(file)) === SHA256) return file;
  await mkdir(folder, { recursive: true });
  const made = await mkdtemp(join(folder, 'download-'));
  try {
    // Debian's own Python has no pip.
    await run('python3', ['-m', 'venv', join(made, 'venv')], { timeout: LIMIT_MS });
    const what = ['--no-deps', '--only-binary', ':all:', '--ignore-requires-python'],
      wanted = `${EVALUATORS.name}==${EVALUATORS.version}`;
    await run(
      join(made, 'venv', 'bin', 'python'),
      ['-m', 'pip', 'download', '--quiet', '--retries', '7', ...what, '--dest', made, wanted],
      { timeout: LIMIT_MS },
    );
    expect(await hashOf(join(made, WHEEL))).toBe(SHA256);
    await rename(join(made, WHEEL), file);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
  return file;
}
const hashOf = async (file: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(file))
    .digest('hex');

describe('what is said of the evaluators before they are installed', () => {
  it("is what the pinned wheel's own sources offer", { timeout: 3 * LIMIT_MS }, async () => {
    const { stdout } = await run('python3', ['-I', 'test/fixtures/osworld/offered.py', await wheel()], {
        timeout: LIMIT_MS,
      }),
      offered = JSON.parse(stdout) as { getters: string[]; metrics: string[] };
    expect([...OFFERED_GETTERS].sort()).toEqual(offered.getters);
    // A task that cannot be done is judged by its last action.
    expect([...OFFERED_METRICS, 'infeasible'].sort()).toEqual(offered.metrics);
  });
  it('names nothing as special that is not offered', () => {
    for (const name of FULL_METRICS) expect(OFFERED_METRICS, name).toContain(name);
    for (const name of Object.keys(UNOFFERED)) expect([...OFFERED_METRICS, ...OFFERED_GETTERS]).toContain(name);
  });
});
