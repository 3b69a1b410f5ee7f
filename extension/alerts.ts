/**
 * Alerts of runs: a notification, and the command and the webhook that the settings of this machine name. Every window
 * hears of an alert; one of them carries it out.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { window } from 'vscode';
import type { Notifications } from '../runtime/protocol/notifications.js';
import { settings } from './settings.js';
import type { StudioContext } from './studioContext.js';
import { t } from './words.js';

/** `at` undefined: the end of a run whose journal does not say when it was. */
export type RunAlert = Omit<Notifications['run/alert'], 'at'> & { readonly at: number | undefined };
/** A program or a server that does not answer holds nothing up for longer. */
const mostMs = 30_000;

export function sayAlert(s: StudioContext, a: RunAlert): void {
  s.log.info(`run ${a.id}: ${a.kind}: ${a.message}`);
  void passOn(s, a);
  if (!settings.notifyAlerts || a.kind === 'finished') return;
  const open = t('Open Dashboard'),
    words = t('{0}: {1}', a.name, a.message),
    say = a.kind === 'target' ? window.showInformationMessage : window.showWarningMessage;
  void say(words, open).then((picked) => {
    if (picked === open) s.panels.show({ kind: 'dashboard', run: a.run });
  });
}

/** What leaves this window: run, kind and words; no path, no configuration. */
export const alertBody = ({ id, name, kind, message, at }: RunAlert): string =>
  JSON.stringify({ run: id, name, kind, message, at: new Date(at ?? Date.now()).toISOString() });

async function passOn(s: StudioContext, a: RunAlert): Promise<void> {
  const { alertCommand: command, alertWebhook: webhook } = settings;
  if ((command === '' && webhook === '') || !(await isOurs(s.storage, a))) return;
  const failed = (what: string) => (e: unknown) => s.log.warn(`${what}: ${e instanceof Error ? e.message : String(e)}`);
  if (command !== '') await run(command, alertBody(a)).catch(failed('the command for alerts'));
  if (webhook !== '') await post(webhook, alertBody(a)).catch(failed('the webhook for alerts'));
}
/** The first window that leaves a mark; the others find it. */
async function isOurs(storage: string, a: RunAlert): Promise<boolean> {
  const dir = join(storage, 'cache', 'alerts'),
    mark = createHash('sha256')
      .update(`${a.run} ${a.kind} ${a.at ?? ''} ${a.message}`)
      .digest('hex')
      .slice(0, 32);
  await mkdir(dir, { recursive: true });
  return writeFile(join(dir, mark), '', { flag: 'wx' }).then(
    () => true,
    () => false,
  );
}
/** The program itself, without a shell; it reads the alert from its standard input. */
function run(command: string, body: string): Promise<void> {
  return new Promise((done, fail) => {
    const child = spawn(command, [], { stdio: ['pipe', 'ignore', 'ignore'], timeout: mostMs, windowsHide: true });
    child.once('error', fail).once('exit', (code) => {
      if (code === 0) done();
      else fail(new Error(`it ended with code ${code}`));
    });
    child.stdin.once('error', () => undefined).end(body);
  });
}
async function post(url: string, body: string): Promise<void> {
  if (!/^https?:/i.test(url)) throw new Error('its address does not begin with http: or https:');
  const r = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    redirect: 'error',
    signal: AbortSignal.timeout(mostMs),
  });
  if (!r.ok) throw new Error(`it answered ${r.status}`);
}
