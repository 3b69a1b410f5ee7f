import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { browse, type OwnAnswer } from '../../../runtime/cluster/drivers/browser.js';
import { FakeDesktop } from '../../helpers/tasks/fakeDesktop.js';

const PROGRAM = 'runtime/cluster/images/web/overlay/opt/dart-web/browser.py';
/** Two sleepers are all that it sees and can end; whoever is told to end one ends both. */
const TIDIED = `
import os, runpy, signal, subprocess
kill_strangers = runpy.run_path('${PROGRAM}')['kill_strangers']
sleepers = [subprocess.Popen(['sleep', '60']) for _ in range(2)]
listdir, end, told = os.listdir, os.kill, []
def kill(pid, _signal):
    told.append([p.pid for p in sleepers].index(pid))
    end_all()
def end_all():
    for p in sleepers:
        if p.returncode is None: end(p.pid, signal.SIGKILL)
        p.wait()
os.listdir = lambda path: [str(p.pid) for p in sleepers] if path == '/proc' else listdir(path)
os.kill, os.getpid = kill, lambda: -1
try:
    kill_strangers(-2)
finally:
    end_all()
print(told[0])
`;

const answered = (stdout: string): Promise<OwnAnswer> => browse(new FakeDesktop(() => ({ stdout })), [{ run: '1' }]);

describe('what the browser that is kept open answers', () => {
  it('is passed on unchanged where it is well-formed', async () => {
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

describe('the browser that is kept open', () => {
  it('ends no less for a stranger that ends while others are told to', async () => {
    const { stdout } = await promisify(execFile)('python3', ['-c', TIDIED]);
    expect(stdout).toBe('0\n');
  });
});
