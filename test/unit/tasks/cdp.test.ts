import { describe, expect, it } from 'vitest';
import { cdpCall, cdpOpen, cdpTargets, NoBrowser } from '../../../runtime/tasks/cdp.js';
import type { TaskContext } from '../../../runtime/tasks/context.js';
import { Spoiled } from '../../../runtime/tasks/spoiled.js';
import { VerdictDesktop } from '../../../runtime/tasks/verdict.js';
import { FakeDesktop, never } from '../../helpers/tasks/fakeDesktop.js';

/** A desktop whose browser answers this. */
function asking(stdout: string, judged = true): TaskContext {
  const desktop = new FakeDesktop(() => ({ stdout }));
  return {
    desktop,
    signal: never,
    ...(judged ? { verdict: new VerdictDesktop(desktop, () => 0) } : {}),
  } as unknown as TaskContext;
}
const saying = (answer: unknown, judged = true): TaskContext => asking(JSON.stringify({ answer }), judged);
const page = { id: '1', type: 'page', title: 'A', url: 'https://x/' };

describe('what the browser of a desktop answers', () => {
  it('is read where it has the expected shape', async () => {
    expect(await cdpTargets(saying([page]))).toEqual([page]);
    expect(await cdpOpen(saying({ ...page, more: 1 }), 'https://x/')).toEqual(page);
    expect(await cdpCall(saying([{ result: { value: [[1]] } }]), '1', [['Page.reload', {}]])).toEqual([
      { result: { value: [[1]] } },
    ]);
    await expect(cdpTargets(saying(null))).rejects.toBeInstanceOf(NoBrowser);
  });
  it.each([
    ['no JSON', '}{'],
    ['nothing', ''],
    ['null', 'null'],
    ['no answer', '{}'],
    ['lists without end', `{"answer":${'['.repeat(200_000)}`],
    ['too many values', `{"answer":[${'[],'.repeat(1 << 16)}[]]}`],
    ['too long', JSON.stringify({ answer: 'x'.repeat(4 << 20) })],
    ['other things', '{"answer":[{"id":1,"type":"page","title":"","url":""}]}'],
    ['an object', '{"answer":{"length":1}}'],
  ])('%s spoils a verdict, and fails a set-up', async (_what, text) => {
    for (const ask of [
      (c: TaskContext): Promise<unknown> => cdpTargets(c),
      (c: TaskContext): Promise<unknown> => cdpOpen(c, 'https://x/'),
      (c: TaskContext): Promise<unknown> => cdpCall(c, '1', []),
    ]) {
      await expect(ask(asking(text))).rejects.toBeInstanceOf(Spoiled);
      const plain = await ask(asking(text, false)).catch((e: unknown) => e);
      expect(plain).toBeInstanceOf(Error);
      expect(plain).toMatchObject({ message: expect.stringMatching(/^the browser did not answer/) as string });
    }
  });
  it('has one result for each step', async () => {
    await expect(cdpCall(saying([]), '1', [['Page.reload', {}]])).rejects.toBeInstanceOf(Spoiled);
    await expect(cdpCall(saying([3]), '1', [['Page.reload', {}]])).rejects.toBeInstanceOf(Spoiled);
  });
});
