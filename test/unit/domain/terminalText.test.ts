import { expect, it } from 'vitest';
import { printable, printableLine } from '../../../runtime/domain/terminalText.js';
import { formatCheck } from '../../../runtime/tasks/index.js';
import { statusLine } from '../../../runtime/run/reporter.js';

const CLIPBOARD = '\u001b]52;c;Y3VybA==\u0007',
  ERASE = '\u001b[1A\u001b[2K',
  STEERS = /(?![\n\t])\p{Cc}|\u009b|\u202e/u;

it('words of others steer no terminal', () => {
  expect(printable(`a${CLIPBOARD}${ERASE}\u009b2K\u202eb\tc\r\nd`)).not.toMatch(STEERS);
  expect(printable('naïve 👩‍💻\tx\r\ny')).toBe('naïve 👩‍💻\tx\ny');
  expect(printableLine('a\nb\tc')).toBe('a\ufffdb\ufffdc');
});

it('a task’s name rewrites no row of `tasks check`', () => {
  const row = { file: 'a.json', needs: [], with: [], why: [], runs: 'not' as const },
    text = formatCheck([{ ...row, id: `x\nok  runnable${ERASE}${CLIPBOARD}` }] as never);
  expect(text).not.toMatch(STEERS);
  expect(text.split('\n').some((l) => l.startsWith('ok'))).toBe(false);
});

it('an error of a server rewrites no line of progress', () => {
  const s = { phase: 'training', elapsedMs: 0, version: 1, rollouts: 1, rolloutsPerHour: 1, curve: [], errors: 1 };
  expect(statusLine({ ...s, replicaVersions: [], newestError: `no${ERASE}` } as never)).not.toMatch(STEERS);
});
