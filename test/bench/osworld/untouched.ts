/**
 * Tasks whose untouched desktop is a success here, and why, by the beginning of their file's name. They are listed by
 * every run and kept apart from `do_nothing_successes`.
 */
export const untouched: Readonly<Record<string, string>> = {
  // OSWorld's own evaluator says so.
  '99146c54':
    "desktop-env's getter asks only whether Chrome keeps defaults for sites, and Chromium 156 keeps one of its own",
  // Made files do not show what the task is about.
  dfac9ee8: 'the made Thunderbird profile has no account, and the task is to remove one',
  '1954cced': 'pivot tables are compared, and the made gold file has none',
  '1de60575': 'pivot tables are compared, and the made gold file has none',
  '535364ea': 'pivot tables are compared, and the made gold file has none',
  dd84e895:
    'messages with a star are compared with all messages of a folder, and the made Thunderbird profile has none',
  '51719eea': 'pivot tables are compared, and the made gold file has none',
};

export const whyUntouched = (id: string): string | undefined => untouched[id.slice(0, 8)];
