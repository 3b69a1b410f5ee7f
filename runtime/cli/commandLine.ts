import { main } from './cli.js';

/** The command line and the daemon: everything except child processes. */
export const commandLine = (argv: string[]): Promise<number> =>
  main(argv, {
    serve: async (...args) => (await import('../server/command.js')).serveCommand(...args),
    train: async (...args) => (await import('../server/command.js')).trainServed(...args),
  });
