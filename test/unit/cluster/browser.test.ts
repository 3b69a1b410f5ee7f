import { describe, expect, it } from 'vitest';
import { browse, type OwnAnswer } from '../../../runtime/cluster/drivers/browser.js';
import { FakeDesktop } from '../../helpers/tasks/fakeDesktop.js';

const answered = (stdout: string): Promise<OwnAnswer> => browse(new FakeDesktop(() => ({ stdout })), [{ run: '1' }]);

describe('what the browser that is kept open answers', () => {
  it('is taken as it is', async () => {
    expect(await answered('{"ok": [{"value": [1, "a"]}]}')).toEqual({ ok: [{ value: [1, 'a'] }] });
    const error = { error: 'no answer in time', at: 0, kind: 'hung' };
    expect(await answered(JSON.stringify(error))).toEqual(error);
  });
  it.each(['', '}{', 'null', '{"ok": [3]}', '{"ok": [{}, {}]}', '{"error": 1, "at": 0, "kind": "page"}'])(
    '%s is no answer of a browser',
    async (text) => {
      expect(await answered(text)).toMatchObject({ kind: 'browser' });
    },
  );
  it('more than a page has to say is the fault of the page', async () => {
    for (const value of ['['.repeat(200_000), `[${'[],'.repeat(1 << 16)}[]]`, `"${'x'.repeat(1 << 20)}"`])
      expect(await answered(`{"ok": [{"value": ${value}}]}`)).toMatchObject({ kind: 'page' });
  });
});
