import { installEvaluators } from '../tasks/index.js';
import type { Options } from './options.js';
import { print, printJson, statusLine, tell } from './output.js';

/** `osworld install`: OSWorld's own evaluators, for what we do not judge ourselves. */
export async function install(o: Options): Promise<number> {
  const abort = new AbortController(),
    status = statusLine();
  process.once('SIGINT', () => {
    abort.abort();
  });
  const { place, folder, installed } = await installEvaluators({
    full: o['full'] === true,
    signal: abort.signal,
    onLine: (line) => {
      const short = line.trim().slice(0, 100);
      if (short === '') return;
      if (process.stderr.isTTY) status.show(short);
      else tell(`${short}\n`);
    },
  });
  status.clear();
  if (o['json']) printJson({ ...place, folder, installed }, 0);
  else print(`${place.name} ${place.version} ${installed ? 'is installed' : 'was installed already'} in ${folder}\n`);
  return 0;
}
