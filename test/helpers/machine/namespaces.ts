/** Commands that put a program elsewhere on the same machine, for root and for an ordinary user (with uidmap). */
const root = process.getuid?.() === 0;

/** In a network namespace of its own, like a dev container without host network. */
export const otherNetwork = (command: readonly string[]): string[] => [
  'unshare',
  ...(root ? [] : ['--map-root-user']),
  '--net',
  ...command,
];

/** In a process namespace of its own too; dies with the first process of the command. */
export const otherProcesses = (command: readonly string[]): string[] => [
  'unshare',
  ...(root ? [] : ['--map-root-user']),
  '--net',
  '--pid',
  '--fork',
  '--kill-child',
  '--mount-proc',
  ...command,
];

/** As another user, in our own network namespace. */
export const otherUser = (command: readonly string[]): string[] => [
  ...(root ? [] : ['unshare', '--map-auto', '--map-root-user']),
  'setpriv',
  '--reuid=1234',
  '--regid=1234',
  '--clear-groups',
  ...command,
];
