import { installEvaluators } from '../tasks/index.js';
import type { Options } from './options.js';

/** `osworld install`: OSWorld's own evaluators, for what we do not judge ourselves. */
export async function install(o: Options): Promise<number> {
  const tty = process.stderr.isTTY,
    abort = new AbortController();
  process.once('SIGINT', () => {
    abort.abort();
  });
  const { place, folder, installed } = await installEvaluators({
    full: o['full'] === true,
    signal: abort.signal,
    onLine: (line) => {
      const short = line.trim().slice(0, 100);
      if (short !== '') process.stderr.write(tty ? `\r\x1b[2K${short}` : `${short}\n`);
    },
  });
  if (tty) process.stderr.write('\r\x1b[2K');
  if (o['json']) process.stdout.write(`${JSON.stringify({ ...place, folder, installed })}\n`);
  else
    process.stdout.write(
      `${place.name} ${place.version} ${installed ? 'is installed' : 'was installed already'} in ${folder}\n`,
    );
  return 0;
}
