import { installEvaluators } from '../tasks/index.js';
import { onInterrupt } from './interrupt.js';
import type { Options } from './options.js';
import { print, printJson, statusLine, tell } from './output.js';

/** `osworld install`: OSWorld's own evaluators, for what we do not judge ourselves. */
export async function install(o: Options): Promise<number> {
  const stop = onInterrupt('Stopping the installation.'),
    status = statusLine();
  const { place, folder, installed } = await installEvaluators({
    full: o['full'] === true,
    signal: stop.signal,
    onLine: (line) => {
      const short = line.trim().slice(0, 100);
      if (short === '') return;
      if (process.stderr.isTTY) status.show(short);
      else tell(`${short}\n`);
    },
  }).finally(() => {
    stop.off();
    status.clear();
  });
  if (o['json']) printJson({ ...place, folder, installed }, 0);
  else print(`${place.name} ${place.version} ${installed ? 'is installed' : 'was installed already'} in ${folder}\n`);
  return 0;
}
