import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Of a Python and of packages that it has. Rejects when one is not installed. */
export async function packageVersions(
  python: string,
  names: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const program = `import json, platform; from importlib.metadata import version; print(json.dumps({"python": platform.python_version(), **{n: version(n) for n in ${JSON.stringify(names)}}}))`,
    { stdout } = await promisify(execFile)(python, ['-c', program], { encoding: 'utf8' });
  return JSON.parse(stdout) as Record<string, string>;
}
