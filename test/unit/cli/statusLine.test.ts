import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { statusLine } from '../../../runtime/cli/output.js';

/** A terminal of 40 columns that keeps what is written to it. */
function terminal(isTTY = true): { out: NodeJS.WriteStream; written: string[] } {
  const written: string[] = [],
    out = { isTTY, columns: 40, write: (text: string) => written.push(text) } as unknown as NodeJS.WriteStream;
  return { out, written };
}
const CLEARED = '\r\x1b[2K';

describe('statusLine', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('shows the first text at once and of many the newest, ten times a second at most', () => {
    const { out, written } = terminal(),
      line = statusLine(false, out);
    for (let i = 1; i <= 50; i++) line.show(`${i} of 50`);
    expect(written).toEqual([`${CLEARED}1 of 50`]);
    vi.advanceTimersByTime(100);
    expect(written).toEqual([`${CLEARED}1 of 50`, `${CLEARED}50 of 50`]);
    vi.advanceTimersByTime(1000);
    line.show('later');
    expect(written.at(-1)).toBe(`${CLEARED}later`);
  });
  it('is cleared for what is printed, and what waited is not shown after that', () => {
    const { out, written } = terminal(),
      line = statusLine(false, out);
    line.clear();
    expect(written).toEqual([]);
    line.show('a');
    line.show('b');
    line.clear();
    line.clear();
    vi.advanceTimersByTime(1000);
    expect(written).toEqual([`${CLEARED}a`, CLEARED]);
  });
  it('fits into the line, and steers no terminal', () => {
    const { out, written } = terminal();
    statusLine(false, out).show(`\x1b]52;c;x\x07\n${'long '.repeat(40)}`);
    const text = written[0]!.slice(CLEARED.length);
    expect(text).toHaveLength(39);
    expect(text).not.toMatch(/[\x00-\x1f\x7f]/);
  });
  it.each([
    ['where that is no terminal', terminal(false), false],
    ['when quiet', terminal(), true],
  ])('writes nothing %s', (_where, { out, written }, quiet) => {
    const line = statusLine(quiet, out);
    line.show('a');
    line.clear();
    expect(written).toEqual([]);
  });
});
