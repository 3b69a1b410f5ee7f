import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Pulse, type ProcessWork } from '../../../runtime/concurrency/pulse.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A silent child, and an operating system that answers when the test says so. */
function silent() {
  const hung: string[] = [],
    answers: ((w: ProcessWork | undefined) => void)[] = [];
  const pulse = new Pulse({
    pid: 1,
    workOf: () => new Promise((r) => answers.push(r)),
    hung: (why) => hung.push(why),
    limits: { idleMs: 1000, silentMs: 2000, blindMs: 2000 },
  });
  return { hung, answers, pulse };
}

it('a child that was stopped while it was looked at is not hung', async () => {
  const { hung, answers, pulse } = silent();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(answers).toHaveLength(1);
  pulse.stop();
  answers[0]!(undefined);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(hung).toEqual([]);
});

it('a hung child is told of once, after one look at a time', async () => {
  const { hung, answers } = silent();
  for (let n = 0; n < 20; n++) {
    await vi.advanceTimersByTimeAsync(500);
    expect(answers.length).toBeLessThanOrEqual(1);
    answers.pop()?.(undefined);
  }
  await vi.advanceTimersByTimeAsync(10_000);
  expect(hung).toEqual([expect.stringMatching(/^it gave no sign of life for \d s$/)]);
});
