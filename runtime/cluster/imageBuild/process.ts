import { spawn } from 'node:child_process';
import { StudioError, messageOf, cancelled } from '../../domain/index.js';
import { logLines } from '../../files/logLines.js';

export const buildCancelled = (what: string): StudioError =>
  cancelled(what, { remedy: 'Start it again when you are ready; finished parts are kept.' });

/**
 * Runs a build tool and reports each line of its output. Rejects with `desktop.image` and its last lines when it fails,
 * and with `cancelled` when the signal fires: the whole process group has then ended, so nothing writes any more.
 */
export async function runTool(
  cmd: readonly string[],
  o: {
    signal?: AbortSignal;
    onLine?: (line: string) => void;
    remedy: (tail: string) => string;
    env?: NodeJS.ProcessEnv;
  },
): Promise<void> {
  if (o.signal?.aborted) throw buildCancelled(cmd[0]!);
  const child = spawn(cmd[0]!, cmd.slice(1), {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: o.env ?? process.env,
  });
  const tail: string[] = [];
  for (const s of [child.stdout, child.stderr])
    logLines(s, (l) => {
      tail.push(l);
      if (tail.length > 40) tail.shift();
      o.onLine?.(l);
    });
  const abort = (): void => {
    try {
      process.kill(-child.pid!, 'SIGTERM');
    } catch {
      /* ended meanwhile */
    }
  };
  o.signal?.addEventListener('abort', abort, { once: true });
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (o.signal?.aborted) throw buildCancelled(cmd[0]!);
    if (code !== 0)
      throw new StudioError(
        'desktop.image',
        `${cmd[0]!.split('/').pop()} ended with code ${code}: ${lastWords(tail)}`,
        o.remedy(tail.join('\n')),
        { details: { output: tail.join('\n') } },
      );
  } catch (e) {
    if (e instanceof StudioError) throw e;
    throw new StudioError('desktop.image', `${cmd[0]} could not be started: ${messageOf(e)}`, o.remedy(''), {
      cause: e,
    });
  } finally {
    o.signal?.removeEventListener('abort', abort);
  }
}

/** The line that explains a failure: the last one marked as an error, else the last one. */
export function lastWords(lines: readonly string[]): string {
  const said = lines.filter((l) => l.trim() !== '');
  return (
    said
      .filter((l) => /^(E:|W: .*(fail|Fail)|error|dpkg: error)/.test(l))
      .slice(-2)
      .join(' ') ||
    said[said.length - 1] ||
    'there was no output'
  );
}

/** The remedy for a failed package installation, from apt's output. */
export function aptRemedy(output: string): string {
  if (/No space left|not enough space|don't have enough free space/i.test(output))
    return 'Free at least 2 GB in the cache folder (DART_STUDIO_CACHE moves it) and try again.';
  if (/NO_PUBKEY|not signed|signatures couldn't be verified|keyring/i.test(output))
    return 'Install debian-archive-keyring (apt-get install debian-archive-keyring) and try again.';
  if (
    /Could not resolve|Temporary failure|Could not connect|Connection (timed out|refused)|Unable to connect|Failed to fetch/i.test(
      output,
    )
  )
    return 'Check that this machine reaches its Debian mirror (`apt-get update` must work), or set http_proxy, and try again.';
  if (/not valid yet|Release file .* expired/i.test(output)) return "Set this machine's clock and try again.";
  if (/Unable to locate package|has no installation candidate/i.test(output))
    return 'A name in image/packages.txt is not in the archive: correct it, or check the apt sources of this machine.';
  if (/newuidmap|newgidmap|subuid|unshare|user namespace/i.test(output))
    return 'Install uidmap, run `dart-studio desktop build` as root once, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1).';
  return 'Read the output above, and run `dart-studio doctor` to check what a build needs.';
}
