import { errorCode, messageOf } from '../domain/index.js';
import { endsByInterrupt } from './interrupt.js';
import { tell } from './output.js';

interface Process {
  readonly stdout: Pick<NodeJS.WriteStream, 'on'>;
  readonly stderr: Pick<NodeJS.WriteStream, 'on'>;
  exitCode?: string | number | null | undefined;
  exit(code: number): void;
}

/**
 * What becomes of a command whose output cannot be written. A command that works until Ctrl-C goes on without readers:
 * its results are in files. `| head` ends any other, which is no error; a full disk is one, said once. `failed` then.
 */
export function watchOutput(
  process_: Process = process,
  { working = endsByInterrupt, say = tell } = {},
): { readonly failed: boolean } {
  let failed = false;
  // There is nobody to tell.
  process_.stderr.on('error', () => {});
  process_.stdout.on('error', (e: unknown) => {
    if (errorCode(e) === 'EPIPE') {
      if (!working()) process_.exit(0);
      return;
    }
    if (!failed) say(`The output cannot be written: ${messageOf(e)}\n`);
    failed = true;
    // The command may be over already, and its code with it.
    process_.exitCode = 1;
    if (!working()) process_.exit(1);
  });
  return {
    get failed() {
      return failed;
    },
  };
}
