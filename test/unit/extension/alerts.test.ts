import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunAlert } from '../../../extension/alerts.js';
import type { StudioContext } from '../../../extension/studioContext.js';
import type { RunSummary } from '../../../runtime/protocol/types.js';

/** What the editor was told to show, and what a person answers. */
const editor = vi.hoisted(() => ({
  said: [] as {
    readonly how: 'information' | 'warning' | 'error';
    readonly words: string;
    readonly buttons: string[];
  }[],
  pick: undefined as string | undefined,
  settings: {} as Record<string, unknown>,
}));
vi.mock('vscode', () => {
  const say =
    (how: 'information' | 'warning' | 'error') =>
    (words: string, ...buttons: string[]) => {
      editor.said.push({ how, words, buttons });
      return Promise.resolve(buttons.find((b) => b === editor.pick));
    };
  return {
    window: {
      showInformationMessage: say('information'),
      showWarningMessage: say('warning'),
      showErrorMessage: say('error'),
      state: { focused: true },
    },
    workspace: {
      getConfiguration: (section: string) => ({
        get: (key: string, fallback: unknown) => editor.settings[`${section}.${key}`] ?? fallback,
      }),
    },
  };
});
const { sayAlert } = await import('../../../extension/alerts.js'),
  { sayEnded } = await import('../../../extension/notify.js'),
  { sayRecovered } = await import('../../../extension/recovered.js');

const alert = (o: Partial<RunAlert> = {}): RunAlert => ({
  run: '/w/runs/tiny',
  id: 'tiny-1',
  name: 'tiny',
  kind: 'target',
  message: 'An evaluation reached 90 %; the target is 80 %.',
  at: Date.UTC(2026, 10, 22, 12),
  ...o,
});

let dir = '',
  server: Server | undefined,
  warnings: string[] = [],
  shown: unknown[] = [];
/** A window of the extension on this storage. */
const studio = (visible: readonly unknown[] = []): StudioContext =>
  ({
    storage: dir,
    log: { info: () => undefined, warn: (m: string) => warnings.push(m) },
    panels: { show: (input: unknown) => shown.push(input), visible },
    extension: { globalState: { get: (_key: string, fallback: unknown) => fallback, update: () => Promise.resolve() } },
    cancelled: new Set<string>(),
    run: () => undefined,
  }) as unknown as StudioContext;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dart-alerts-'));
  editor.said = [];
  editor.pick = undefined;
  editor.settings = {};
  warnings = [];
  shown = [];
});
afterEach(async () => {
  await new Promise((done) => (server ? server.close(done) : done(undefined)));
  server = undefined;
  rmSync(dir, { recursive: true, force: true });
});

/** A program that keeps what it reads, one line for each time it is started, and ends with a code. */
function program(code = 0): { readonly path: string; readonly heard: () => readonly unknown[] } {
  const path = join(dir, 'page-me.sh'),
    out = join(dir, 'heard');
  writeFileSync(path, `#!/bin/sh\ntest $# -eq 0 || exit 9\ncat >> '${out}'\necho >> '${out}'\nexit ${code}\n`);
  chmodSync(path, 0o755);
  return {
    path,
    heard: () =>
      existsSync(out)
        ? readFileSync(out, 'utf8')
            .split('\n')
            .filter((l) => l !== '')
            .map((l) => JSON.parse(l) as unknown)
        : [],
  };
}
interface Heard {
  readonly method: string | undefined;
  readonly type: string | undefined;
  readonly body: unknown;
}
/** A server that keeps what is posted to it. */
async function hook(
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ url: string; heard: Heard[] }> {
  const heard: Heard[] = [];
  server = createServer((req, res) => {
    let text = '';
    req.on('data', (d: Buffer) => (text += d.toString()));
    req.on('end', () => {
      heard.push({
        method: req.method,
        type: req.headers['content-type'],
        body: text === '' ? undefined : (JSON.parse(text) as unknown),
      });
      res.writeHead(status, headers).end();
    });
  });
  await new Promise<void>((done) => server!.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, heard };
}
const body = {
  run: 'tiny-1',
  name: 'tiny',
  kind: 'target',
  message: 'An evaluation reached 90 %; the target is 80 %.',
  at: '2026-11-22T12:00:00.000Z',
};

describe('an alert', () => {
  it('is a notification that opens the dashboard: good news as information, the rest as a warning', async () => {
    editor.pick = 'Open Dashboard';
    sayAlert(studio(), alert());
    sayAlert(studio(), alert({ kind: 'stalled', message: 'No rollout has ended for 10 minutes.' }));
    expect(editor.said).toEqual([
      { how: 'information', words: `tiny: ${body.message}`, buttons: ['Open Dashboard'] },
      { how: 'warning', words: 'tiny: No rollout has ended for 10 minutes.', buttons: ['Open Dashboard'] },
    ]);
    await vi.waitFor(() => expect(shown).toHaveLength(2));
    expect(shown[0]).toEqual({ kind: 'dashboard', run: '/w/runs/tiny' });
  });
  it('is none where the settings want none, and still goes to who is named there', async () => {
    const p = program();
    editor.settings = { 'dartStudio.notifications.alerts': false, 'dartStudio.alerts.command': p.path };
    sayAlert(studio(), alert());
    await vi.waitFor(() => expect(p.heard()).toEqual([body]));
    expect(editor.said).toEqual([]);
  });
  it('is handed to the command on its standard input and to the webhook as JSON, without path or configuration', async () => {
    const p = program(),
      h = await hook();
    editor.settings = { 'dartStudio.alerts.command': p.path, 'dartStudio.alerts.webhook': h.url };
    sayAlert(studio(), alert());
    await vi.waitFor(() => expect(h.heard).toHaveLength(1));
    expect(p.heard()).toEqual([body]);
    expect(h.heard).toEqual([{ method: 'POST', type: 'application/json', body }]);
    expect(warnings).toEqual([]);
  });
  it('is carried out by one window of all that hear it, and again when it comes again', async () => {
    const p = program();
    editor.settings = { 'dartStudio.alerts.command': p.path };
    for (let i = 0; i < 5; i++) sayAlert(studio(), alert());
    const later = alert({ at: Date.UTC(2026, 10, 22, 13) });
    for (let i = 0; i < 5; i++) sayAlert(studio(), later);
    await vi.waitFor(() => expect(p.heard()).toHaveLength(2));
    // Each window has left its mark or found one: nobody is still at it.
    expect(readdirSync(join(dir, 'cache', 'alerts'))).toHaveLength(2);
    expect(editor.said).toHaveLength(10);
  });
  it('never goes through a shell, and no address but http', async () => {
    const out = join(dir, 'owned');
    editor.settings = {
      'dartStudio.alerts.command': `/bin/true; touch ${out}`,
      'dartStudio.alerts.webhook': `file://${out}`,
    };
    sayAlert(studio(), alert());
    await vi.waitFor(() => expect(warnings).toHaveLength(2));
    expect(warnings[0]).toMatch(/^the command for alerts: .*ENOENT/);
    expect(warnings[1]).toMatch(/^the webhook for alerts: its address does not begin with http/);
    expect(existsSync(out)).toBe(false);
  });
  it('that the command or the server refuses is a line of the log; a redirect is followed nowhere', async () => {
    const p = program(3),
      h = await hook(302, { location: '/elsewhere' });
    editor.settings = { 'dartStudio.alerts.command': p.path, 'dartStudio.alerts.webhook': h.url };
    sayAlert(studio(), alert());
    await vi.waitFor(() => expect(warnings).toHaveLength(2));
    expect(warnings[0]).toBe('the command for alerts: it ended with code 3');
    expect(warnings[1]).toMatch(/^the webhook for alerts: /);
    expect(h.heard).toHaveLength(1);
  });
});

describe('the end of a run', () => {
  const ended: RunSummary = {
    run: '/w/runs/tiny',
    id: 'tiny-1',
    name: 'tiny',
    createdAt: Date.UTC(2026, 10, 22, 11),
    endedAt: Date.UTC(2026, 10, 22, 12),
    state: 'finished',
    rollouts: 40,
    version: 5,
    evals: [0.9],
    lastEval: {
      label: 'final',
      at: 1,
      version: 5,
      episodes: 10,
      successes: 9,
      errors: 0,
      low: 0.6,
      high: 0.98,
      perFamily: {},
    },
  };
  it('is one notification and one alert', async () => {
    const p = program();
    editor.settings = { 'dartStudio.alerts.command': p.path };
    sayEnded(studio(), ended);
    await vi.waitFor(() => expect(p.heard()).toHaveLength(1));
    expect(p.heard()).toMatchObject([
      {
        run: 'tiny-1',
        kind: 'finished',
        message: 'finished, 40 rollouts, evaluation 90 %',
        at: '2026-11-22T12:00:00.000Z',
      },
    ]);
    expect(editor.said).toEqual([
      {
        how: 'information',
        words: 'Training run tiny is finished: 40 rollouts, evaluation 90 %.',
        buttons: ['Open', "Don't Show Again"],
      },
    ]);
  });
  it('of a run that was resumed is told again, also when it comes to the same', async () => {
    const p = program(),
      failed: RunSummary = { ...ended, state: 'failed' };
    editor.settings = { 'dartStudio.alerts.command': p.path };
    sayEnded(studio(), failed);
    await vi.waitFor(() => expect(p.heard()).toHaveLength(1));
    sayEnded(studio(), { ...failed, endedAt: ended.endedAt! + 2000 });
    await vi.waitFor(() => expect(p.heard()).toHaveLength(2));
  });
  it('is none when its runtime died and the next one goes on with it, and one when that cannot', async () => {
    const p = program(),
      was = { run: '/w/runs/tiny', id: 'tiny-1', name: 'tiny', at: ended.endedAt! };
    editor.settings = { 'dartStudio.alerts.command': p.path };
    sayEnded(studio(), { ...ended, state: 'interrupted' });
    sayRecovered(studio(), { ...was, outcome: 'resumed', message: 'It was interrupted and goes on.' });
    sayRecovered(studio(), { ...was, at: was.at + 1, outcome: 'left', message: 'It ended three runtimes.' });
    await vi.waitFor(() => expect(p.heard()).toHaveLength(1));
    expect(p.heard()).toMatchObject([{ run: 'tiny-1', kind: 'finished', message: 'It ended three runtimes.' }]);
  });
  it('says nothing in a window that shows it already, and the alert goes out all the same', async () => {
    const p = program();
    editor.settings = { 'dartStudio.alerts.command': p.path };
    sayEnded(studio([{ kind: 'dashboard', run: '/w/runs/tiny' }]), ended);
    await vi.waitFor(() => expect(p.heard()).toHaveLength(1));
    expect(editor.said).toEqual([]);
  });
});
