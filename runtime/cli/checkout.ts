import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Git answers at once, or is not worth waiting for. */
const PATIENCE_MS = 5000;

/**
 * The commit of the checkout that a bundle was built in, as benchmarks stamp theirs: "017a516d", or "017a516d, with
 * changes" where the runtime's sources differ from it. None where the bundle lies in no checkout of its own: packaged, or
 * copied into somebody else's.
 */
export async function commitOf(bundle: string): Promise<string | undefined> {
  const root = dirname(dirname(bundle));
  if (!existsSync(join(root, '.git'))) return undefined;
  const git = async (...args: string[]): Promise<string> =>
    (await run('git', args, { cwd: root, encoding: 'utf8', timeout: PATIENCE_MS })).stdout.trim();
  try {
    const commit = await git('rev-parse', '--short', 'HEAD'),
      changed = await git('status', '--porcelain', '--untracked-files=no', '--', 'runtime');
    return changed === '' ? commit : `${commit}, with changes`;
  } catch {
    return undefined;
  }
}
