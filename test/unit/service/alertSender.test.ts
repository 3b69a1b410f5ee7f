import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { alertTargets } from '../../../runtime/cli/options.js';
import { AlertSender, noTargets, type OutgoingAlert } from '../../../runtime/service/alerts/alertSender.js';
import { noticeOf } from '../../../runtime/service/alerts/desktopNotice.js';
import { endWords } from '../../../runtime/service/alerts/endWords.js';
import { isAlive } from '../../helpers/machine/processes.js';
import { hook, notifySend, program, type Hook } from '../../helpers/machine/alertEnds.js';

const alert = (o: Partial<OutgoingAlert> = {}): OutgoingAlert => ({
  id: 'tiny-1',
  name: 'tiny',
  kind: 'target',
  message: 'An evaluation reached 90 %; the target is 80 %.',
  at: Date.UTC(2026, 10, 22, 12),
  ...o,
});
const body = {
  run: 'tiny-1',
  name: 'tiny',
  kind: 'target',
  message: 'An evaluation reached 90 %; the target is 80 %.',
  at: '2026-11-22T12:00:00.000Z',
};

let dir = '',
  warnings: string[] = [],
  hooks: Hook[] = [];
const sender = (o: Partial<ConstructorParameters<typeof AlertSender>[0]> = {}): AlertSender =>
    new AlertSender({ warn: (m) => void warnings.push(m), ...o }),
  server = async (o?: Parameters<typeof hook>[0]): Promise<Hook> => {
    const h = await hook(o);
    hooks.push(h);
    return h;
  };
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dart-alerts-'));
  warnings = [];
  hooks = [];
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(hooks.map((h) => h.close()));
  rmSync(dir, { recursive: true, force: true });
});

describe('an alert', () => {
  it('is handed to the command on its standard input and to the webhook as JSON, without path or configuration', async () => {
    const p = program(dir),
      h = await server(),
      s = sender();
    s.use({ command: p.path, webhook: h.url, desktop: false });
    s.send({ ...alert(), run: '/home/me/runs/tiny' } as OutgoingAlert);
    await s.close(false);
    expect(p.heard()).toEqual([body]);
    expect(h.heard).toEqual([{ method: 'POST', type: 'application/json', path: '/hook', body }]);
    expect(warnings).toEqual([]);
  });
  it('goes out once however many windows told where to, and again when it comes again, in order', async () => {
    const p = program(dir),
      s = sender();
    for (let window = 0; window < 5; window++) s.use({ ...noTargets, command: p.path });
    s.send(alert());
    s.send(alert({ at: Date.UTC(2026, 10, 22, 13), message: 'Later.' }));
    await s.close(false);
    expect(p.heard()).toMatchObject([{ message: body.message }, { message: 'Later.' }]);
  });
  it('goes where the newest window says; what it leaves out is as the command line says', async () => {
    const [own, first, second] = ['own', 'first', 'second'].map((n) => program(dir, n)) as [
        ReturnType<typeof program>,
        ReturnType<typeof program>,
        ReturnType<typeof program>,
      ],
      s = sender({ targets: { ...noTargets, command: own.path } });
    s.send(alert());
    s.use({ ...noTargets, command: first.path });
    s.use({ ...noTargets, command: second.path });
    s.send(alert());
    s.use(noTargets);
    s.send(alert());
    await s.close(false);
    expect([own, first, second].map((p) => p.heard().length)).toEqual([2, 0, 1]);
  });
  it('never goes through a shell, and to no address but http', async () => {
    const out = join(dir, 'owned'),
      s = sender();
    s.use({ command: `/bin/true; touch ${out}`, webhook: `file://${out}`, desktop: false });
    s.send(alert({ name: `$(touch ${out})`, message: `\`touch ${out}\`` }));
    await s.close(false);
    expect(warnings.sort()).toEqual([
      expect.stringMatching(/^the command for alerts: .*ENOENT/) as string,
      expect.stringMatching(/^the webhook for alerts: its address does not begin with http/) as string,
    ]);
    expect(existsSync(out)).toBe(false);
  });
  it('that the command or the server refuses is a line of the log; a redirect is followed nowhere', async () => {
    const elsewhere = await server(),
      h = await server({ status: 302, headers: { location: elsewhere.url } }),
      noisy = join(dir, 'noisy.sh'),
      s = sender();
    writeFileSync(noisy, '#!/bin/sh\nyes no-such-channel | head -c 1000000 >&2\nexit 3\n');
    chmodSync(noisy, 0o755);
    s.use({ command: noisy, webhook: h.url, desktop: false });
    s.send(alert());
    await s.close(false);
    const [command, webhook] = warnings.sort();
    expect(command).toMatch(/^the command for alerts: it ended with code 3: no-such-channel/);
    expect(command!.length).toBeLessThan(600);
    expect(webhook).toBe('the webhook for alerts: it answered with a redirect, which is not followed');
    expect(h.heard).toHaveLength(1);
    expect(elsewhere.heard).toEqual([]);
  });
  it('waits for no program and no server that does not answer, and leaves nothing of it behind', async () => {
    const h = await server({ silent: true }),
      hangs = join(dir, 'hangs.sh'),
      child = join(dir, 'child');
    writeFileSync(hangs, `#!/bin/sh\nsleep 600 &\necho $! > '${child}'\nwait\n`);
    chmodSync(hangs, 0o755);
    // Until the program came so far as to start another: on a slow machine it is ended before.
    for (let ms = 500; !existsSync(child) || readFileSync(child, 'utf8') === ''; ms *= 2) {
      const s = sender({ deadlineMs: ms });
      warnings = [];
      s.use({ command: hangs, webhook: h.url, desktop: false });
      s.send(alert());
      await s.close(false);
      expect(warnings.sort()).toEqual([
        `the command for alerts: it did not end within ${ms / 1000} s`,
        `the webhook for alerts: it did not answer within ${ms / 1000} s`,
      ]);
    }
    const pid = Number(readFileSync(child, 'utf8'));
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
  it('does not name the address of a webhook, which is a secret, when nobody answers there', async () => {
    const h = await hook(),
      s = sender();
    await h.close();
    s.use({ ...noTargets, webhook: h.url });
    s.send(alert());
    await s.close(false);
    expect(warnings).toEqual(['the webhook for alerts: no connection (ECONNREFUSED)']);
  });
  it('says why a port that is never asked is not', async () => {
    const s = sender();
    s.use({ ...noTargets, webhook: 'http://127.0.0.1:9/secret' });
    s.send(alert());
    await s.close(false);
    expect(warnings).toEqual(['the webhook for alerts: no connection (its port is one that is never asked)']);
  });
  it('does not pile up behind a program that hangs', async () => {
    const p = program(dir),
      s = sender();
    s.use({ ...noTargets, command: p.path });
    for (let i = 0; i < 120; i++) s.send(alert());
    expect(warnings).toHaveLength(20);
    await s.close(true);
  });
});

describe('a notification of the operating system', () => {
  const name = `"; rm -rf ~; echo "`,
    message = `-u <b>bold</b> & $(id) \`id\` 'x' \\n\u0000\u202e\nnext`;
  it('of Linux is notify-send with the words behind --, as text and not as markup or escapes', () => {
    const n = noticeOf('linux', name, message)!;
    expect(n.program).toBe('notify-send');
    expect(n.args).toEqual([
      '--app-name=DART Studio',
      '--',
      name,
      `-u &lt;b&gt;bold&lt;/b&gt; &amp; $(id) \`id\` 'x' \\\\n next`,
    ]);
  });
  it('of macOS is a fixed script with the words as its arguments', () => {
    const n = noticeOf('darwin', name, message)!,
      end = n.args.indexOf('--');
    expect(n.program).toBe('osascript');
    expect(n.args.slice(0, end)).toEqual(noticeOf('darwin', 'x', 'y')!.args.slice(0, end));
    expect(n.args.slice(0, end).filter((_, i) => i % 2 === 0)).toEqual(['-e', '-e', '-e']);
    expect(n.args.slice(end + 1)).toEqual([name, `-u <b>bold</b> & $(id) \`id\` 'x' \\n next`]);
  });
  it('of Windows is a fixed script with the words in its environment, which become text nodes', () => {
    const n = noticeOf('win32', name, message)!;
    expect(n.program).toBe('powershell.exe');
    expect(n.args).toEqual(noticeOf('win32', 'x', 'y')!.args);
    expect(n.args.at(-1)).toContain('CreateTextNode($env:DART_STUDIO_NOTICE_TEXT)');
    expect(n.env).toEqual({
      DART_STUDIO_NOTICE_TITLE: name,
      DART_STUDIO_NOTICE_TEXT: `-u <b>bold</b> & $(id) \`id\` 'x' \\n next`,
    });
  });
  it('is short, and none where there is none', () => {
    expect(noticeOf('linux', 'x'.repeat(5000), 'y'.repeat(5000))!.args.join('').length).toBeLessThan(700);
    expect(noticeOf('aix', 'x', 'y')).toBeUndefined();
  });
  it('is shown by the program that PATH has, and where it has none the log says so, once', async () => {
    const sent = notifySend(dir),
      s = sender({ platform: 'linux' });
    s.use({ ...noTargets, desktop: true });
    vi.stubEnv('PATH', join(dir, 'empty'));
    s.send(alert());
    s.send(alert());
    await s.close(false);
    expect(warnings).toEqual(["no desktop notifications: notify-send is not on this machine's PATH"]);
    vi.stubEnv('PATH', `.:${dir}:/usr/bin:/bin`);
    s.send(alert());
    await s.close(false);
    expect(sent.calls()).toEqual([['--app-name=DART Studio', '--', 'tiny', body.message]]);
    expect(warnings).toHaveLength(1);
  });
});

describe('what the command line says of alerts', () => {
  it('stands before the environment, which keeps none of it', () => {
    const env = {
      DART_STUDIO_ALERT_COMMAND: '/bin/page',
      DART_STUDIO_ALERT_WEBHOOK: 'https://hooks.example/secret',
      DART_STUDIO_ALERT_DESKTOP: '1',
    };
    expect(alertTargets({ alertCommand: '/bin/own' }, env)).toEqual({
      command: '/bin/own',
      webhook: 'https://hooks.example/secret',
      desktop: true,
    });
    expect(env).toEqual({});
    expect(alertTargets({}, {})).toEqual(noTargets);
    expect(() => alertTargets({ alertWebhook: 'ftp://x' }, {})).toThrow(/webhook/);
  });
});

it('the end of a run in words', () => {
  const e = { episodes: 10, successes: 9 };
  expect(endWords({ state: 'finished', rollouts: 40, lastEval: e })).toBe('finished, 40 rollouts, evaluation 90 %');
  expect(endWords({ state: 'stopped', rollouts: 1 })).toBe('stopped, 1 rollout');
  expect(endWords({ state: 'failed', rollouts: 0 }, { message: 'No desktops.', remedy: 'Start Docker.' })).toBe(
    'failed, 0 rollouts, No desktops. Start Docker.',
  );
});
