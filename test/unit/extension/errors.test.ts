import { beforeEach, expect, it, vi } from 'vitest';

/** What the editor was told to show; nobody closes any of it. */
const shown = vi.hoisted(() => [] as string[]);
vi.mock('vscode', () => ({
  window: {
    showErrorMessage: (words: string) => {
      shown.push(words);
      return new Promise(() => undefined);
    },
  },
  commands: { executeCommand: () => Promise.resolve() },
}));
const { Reporter } = await import('../../../extension/errors.js');

const fault = { kind: 'store.io', message: 'Disk full.', remedy: 'Make room.' };
let timers: { readonly at: number; readonly run: () => void }[] = [],
  now = 0;
const goTo = (t: number): void => {
  now = t;
  for (const x of timers.splice(0))
    if (x.at <= t) x.run();
    else timers.push(x);
};
const reporter = (): InstanceType<typeof Reporter> =>
  new Reporter({ error: () => undefined, debug: () => undefined } as never, (run, ms) => {
    timers.push({ at: now + ms, run });
    return () => undefined;
  });
beforeEach(() => {
  shown.length = 0;
  timers = [];
  now = 0;
});

it('a fault that several callers report at once is one toast', () => {
  const r = reporter();
  r.report(fault, 'pause the run');
  r.report(fault, 'read the run');
  r.report({ ...fault, message: 'Another.' });
  expect(shown).toEqual(['DART Studio could not pause the run: Disk full. Make room.', 'Another. Make room.']);
});
it('a command that fails again says so again, though nobody closed what it said before', () => {
  const r = reporter();
  r.report(fault, 'pause the run');
  goTo(1000);
  r.report(fault, 'pause the run');
  expect(shown).toHaveLength(1);
  goTo(3000);
  r.report(fault, 'pause the run');
  expect(shown).toHaveLength(2);
});
