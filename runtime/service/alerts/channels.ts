import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { ignoreFailure } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';

/** Characters of a program's standard error that are kept. */
const mostSaid = 500;

/**
 * A program without a shell. Rejects when it cannot be started, ends with another code than 0 or is still there after
 * `ms`: then it and what it started are killed.
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  o: { readonly input: string; readonly env?: Readonly<Record<string, string>>; readonly ms: number },
): Promise<void> {
  const group = process.platform !== 'win32',
    child = spawn(program, args, {
      stdio: ['pipe', 'ignore', 'pipe'],
      env: { ...process.env, ...o.env },
      windowsHide: true,
      detached: group,
    });
  let said = '',
    late = false;
  child.stderr.on('data', (d: Buffer) => {
    if (said.length < mostSaid) said = (said + d.toString()).slice(0, mostSaid);
  });
  // A program that does not read what it is told is no fault.
  child.stdin.on('error', () => undefined).end(o.input);
  const timer = setTimeout(() => {
    late = true;
    if (group && child.pid !== undefined) killGroup(child.pid);
    else child.kill('SIGKILL');
  }, o.ms);
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    if (late) throw new Error(`it did not end within ${o.ms / 1000} s`);
    const words = said.replace(/\s+/g, ' ').trim();
    if (code !== 0) throw new Error(`it ended with code ${code ?? 'none'}${words === '' ? '' : `: ${words}`}`);
  } finally {
    clearTimeout(timer);
    // Programs that it left running may hold the pipe.
    child.stderr.destroy();
  }
}
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    /* it has ended */
  }
}

/** The address is a secret of its owner: no error names it. Follows no redirect. */
export async function post(address: string, body: string, ms: number, stop: AbortSignal): Promise<void> {
  if (!isWebAddress(address)) throw new Error('its address does not begin with http: or https:');
  await withDeadline(ms, [stop], (signal) => postOnce(address, body, ms, signal));
}
async function postOnce(address: string, body: string, ms: number, signal: AbortSignal): Promise<void> {
  const r = await fetch(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    redirect: 'manual',
    signal,
  }).catch((e: unknown) => {
    // A port that no browser asks has no code; other messages may hold the address.
    const { name, cause } = e as { name?: string; cause?: { code?: string; message?: string } },
      code = cause?.code ?? (cause?.message === 'bad port' ? 'its port is one that is never asked' : name);
    throw new Error(name === 'TimeoutError' ? `it did not answer within ${ms / 1000} s` : `no connection (${code})`);
  });
  if (r.body) ignoreFailure(r.body.cancel(), 'what it says is of no interest');
  if (r.status >= 300 && r.status < 400) throw new Error('it answered with a redirect, which is not followed');
  if (!r.ok) throw new Error(`it answered ${r.status}`);
}
export const isWebAddress = (text: string): boolean =>
  /^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : '');
