import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DaemonLog, redact } from '../../../runtime/server/log.js';

describe('redact', () => {
  it('takes out what must not leave', () => {
    expect(redact('token deadbeef here', ['deadbeef'])).toBe('token [redacted] here');
    expect(redact('Authorization: Bearer abc.def-123', [])).not.toContain('abc.def');
    expect(redact('{"apiKey":"sk-123456789","model":"m"}')).toBe('{"apiKey":"[redacted]","model":"m"}');
    expect(redact('TINKER_API_KEY=tk_abcdefgh run')).toBe('TINKER_API_KEY=[redacted] run');
    expect(redact('in /home/ann/runs and /home/ann', [], '/home/ann')).toBe('in ~/runs and ~');
  });
  it('leaves the rest alone', () => {
    for (const s of ['12 tokens a step, 3 secrets', 'serving on 127.0.0.1:4000, pid 7', 'tokens: 12', ''])
      expect(redact(s, [''])).toBe(s);
  });
});

describe('the log', () => {
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-log-'));
  });
  afterEach(() => {
    rmSync(dir, { recursive: true, force: true });
  });

  it('keeps order, indents what follows a first line, and is for its owner alone', async () => {
    const log = await DaemonLog.open(dir, ['s3cret']);
    for (let i = 0; i < 50; i++) log.write('info', `entry ${i} s3cret\nmore`);
    await log.close();
    const lines = readFileSync(log.file, 'utf8').trimEnd().split('\n');
    expect(lines.filter((_l, i) => i % 2 === 0).map((l) => l.replace(/^\S+ /, ''))).toEqual(
      Array.from({ length: 50 }, (_x, i) => `[info] entry ${i} [redacted]`),
    );
    expect(lines[1]).toBe('    more');
    expect(statSync(log.file).mode & 0o777).toBe(0o600);
  });
  it('goes on after a new file could not be begun, and where somebody has removed the old one', async () => {
    const home = join(dir, 'home'),
      away = join(dir, 'away');
    mkdirSync(home);
    const log = await DaemonLog.open(home, []),
      big = 'x'.repeat(1 << 20);
    for (let i = 0; i < 3; i++) log.write('info', big);
    await log.flush();
    renameSync(home, away);
    log.write('info', big);
    await log.flush();
    renameSync(away, home);
    log.write('info', 'it is back');
    await log.flush();
    expect(readFileSync(log.file, 'utf8')).toMatch(/it is back\n$/);
    rmSync(log.file);
    for (let i = 0; i < 4; i++) log.write('info', big);
    log.write('info', 'a new one');
    log.write('info', 'and more');
    await log.close();
    log.write('info', 'too late');
    await log.flush();
    expect(readFileSync(log.file, 'utf8')).toMatch(/a new one\n\S+ \[info\] and more\n$/);
  });
  it('starts a new file when it is full and goes on with an old one', async () => {
    const big = 'x'.repeat(1 << 20);
    for (let round = 0; round < 2; round++) {
      const log = await DaemonLog.open(dir, []);
      for (let i = 0; i < 5; i++) log.write('warn', big);
      await log.close();
    }
    expect(readdirSync(dir).sort()).toEqual(['daemon.1.log', 'daemon.log']);
    for (const f of readdirSync(dir)) expect(statSync(join(dir, f)).size).toBeLessThanOrEqual(4 << 20);
  });
});
