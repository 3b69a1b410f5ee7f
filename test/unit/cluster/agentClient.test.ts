import { randomBytes } from 'node:crypto';
import { Duplex } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentClient } from '../../../runtime/cluster/agentClient.js';
import { ANSWERS, longestLine } from '../../../runtime/cluster/agentReplies.js';

/** The agent's end of the line, in the hands of whoever runs inside. */
class Inside extends Duplex {
  readonly asked: { id: number; cmd: string }[] = [];
  override _read(): void {
    /* pushed by say() */
  }
  override _write(b: Buffer, _e: BufferEncoding, done: () => void): void {
    for (const l of b.toString().split('\n').filter(Boolean))
      this.asked.push(JSON.parse(l) as { id: number; cmd: string });
    done();
  }
  say(line: unknown): void {
    this.push(typeof line === 'string' ? line : `${JSON.stringify(line)}\n`);
  }
}

const client = (): { inside: Inside; agent: AgentClient; lost: Promise<unknown> } => {
  const inside = new Inside(),
    agent = new AgentClient(inside);
  return { inside, agent, lost: new Promise((resolve) => agent.onClose(resolve)) };
};
const settled = { settled: true, ms: 3, detector: 'exact' };

describe('a line from inside a desktop', () => {
  it('is taken when it is an answer or an event, in pieces too', async () => {
    const { inside, agent } = client(),
      exits: unknown[] = [];
    agent.onExit((e) => exits.push(e));
    const out = agent.exec(['true']),
      file = agent.read('/none');
    const exit = { event: 'exit', pid: 7, name: 'xterm', code: null, signal: 'SIGSEGV' };
    const text = `${JSON.stringify(exit)}\n${JSON.stringify({ id: 1, ok: true, code: 3, stdout: 'aGk=', stderr: '', timedOut: false, stopped: false, disturbed: false })}\n`;
    for (const c of text) inside.say(c);
    inside.say({ id: 2, ok: false, error: 'no such file', code: 'ENOENT' });
    expect(await out).toEqual({
      code: 3,
      stdout: Buffer.from('hi'),
      stderr: Buffer.alloc(0),
      timedOut: false,
      stopped: false,
      disturbed: false,
    });
    await expect(file).rejects.toMatchObject({ kind: 'desktop.exec', error: { details: { code: 'ENOENT' } } });
    expect(exits).toEqual([exit]);
    expect(agent.isClosed).toBe(false);
  });

  it.each<[string, unknown]>([
    ['that is not JSON', 'boo\n'],
    ['that is JSON cut off', '{"id":1,"ok":tr\n'],
    ['that is a number', '1\n'],
    ['that is null', 'null\n'],
    ['that is a list', '[{"id":1,"ok":true}]\n'],
    ['nested very deep', `${'['.repeat(30_000)}\n`],
    ['of bytes that are no text', Buffer.from([0xff, 0xfe, 0x7b, 0x0a]).toString('latin1')],
    ['that answers nothing that was asked', { id: 99, ok: true, ...settled }],
    ['whose number is a text', { id: '1', ok: true, ...settled }],
    ['whose number is not whole', { id: 1.5, ok: true, ...settled }],
    ['without a number', { ok: true, ...settled }],
    ['that does not say whether it is one', { id: 1, ...settled }],
    ['that refuses without a reason', { id: 1, ok: false }],
    ['of another command', { id: 1, ok: true, data: 'aGk=' }],
    ['with a field of another type', { id: 1, ok: true, ...settled, settled: 'yes' }],
    ['with a time below zero', { id: 1, ok: true, ...settled, ms: -1 }],
    ['with an unknown detector', { id: 1, ok: true, ...settled, detector: 'oracle' }],
    ['that tells of an unknown event', { event: 'lost', pid: 1 }],
    ['that tells of an exit of nobody', { event: 'exit', pid: 'all', name: 'x', code: 0, signal: null }],
    [
      'that tells of an exit with a name without end',
      { event: 'exit', pid: 2, name: 'x'.repeat(5000), code: 0, signal: null },
    ],
    ['longer than the answer can be', `{"id":1,"ok":true,"pad":"${'x'.repeat(70_000)}"}\n`],
  ])('ends that desktop alone: one %s', async (_what, line) => {
    const { inside, agent, lost } = client(),
      other = client();
    const asked = agent.settle({ horizonMs: 0, maxMs: 10 });
    const result = expect(asked).rejects.toMatchObject({ kind: 'desktop.lost' });
    inside.say(line);
    await result;
    expect(await lost).toMatchObject({ kind: 'desktop.lost' });
    expect(inside.destroyed).toBe(true);
    await expect(agent.ping()).rejects.toMatchObject({ kind: 'desktop.lost' });
    const pong = other.agent.ping();
    other.inside.say({ id: 1, ok: true, pid: 1, uid: 1000, version: 1 });
    await pong;
  });

  it('without an end is not collected for ever', async () => {
    const { inside, lost } = client();
    let pushed = 0;
    while (!inside.destroyed && pushed < 100) {
      inside.say('x'.repeat(1 << 15));
      pushed++;
      await new Promise(setImmediate);
    }
    expect(await lost).toMatchObject({ kind: 'desktop.lost' });
    expect(pushed).toBeLessThan(5);
  });

  it('that answers the same question twice is the second time one too many', async () => {
    const { inside, agent, lost } = client();
    const asked = agent.ping();
    inside.say({ id: 1, ok: true });
    await asked;
    inside.say({ id: 1, ok: true });
    expect(await lost).toMatchObject({ kind: 'desktop.lost' });
  });

  it('after a bad one in the same piece is not looked at', async () => {
    const { inside, agent, lost } = client();
    const exits: unknown[] = [];
    agent.onExit((e) => exits.push(e));
    inside.say(`boo\n${JSON.stringify({ event: 'exit', pid: 7, name: 'x', code: 0, signal: null })}\n`);
    await lost;
    expect(exits).toEqual([]);
  });

  it.each([
    ['lists within lists', '['.repeat(1 << 20) + ']'.repeat(1 << 20), /little of it is strings/],
    ['a million members', `{"id":1${',"a":1'.repeat(1 << 20)}}`, /too many strings/],
    ['one number', `{"id":1,"ok":true,"code":${'1'.repeat(1 << 21)}}`, /little of it is strings/],
    ['escapes', `{"id":1,"ok":true,"stdout":"${'\\u0041'.repeat(1 << 20)}"}`, /escapes/],
  ])('of megabytes is base64 or ends the desktop, before it is parsed: %s', async (_, line, why) => {
    const { inside, agent } = client(),
      asked = agent.exec(['true']);
    inside.say(`${line}\n`);
    await expect(asked).rejects.toMatchObject({ kind: 'desktop.lost', message: expect.stringMatching(why) as string });
    // The same output as base64 is taken.
    const other = client(),
      taken = other.agent.exec(['true']),
      stdout = Buffer.alloc(8 << 20, 'x');
    other.inside.say({
      id: 1,
      ok: true,
      code: 0,
      stdout: stdout.toString('base64'),
      stderr: '',
      timedOut: false,
      stopped: false,
      disturbed: false,
    });
    expect((await taken).stdout.equals(stdout)).toBe(true);
  });

  it('of two long outputs keeps them apart, and has no string that stands for another', async () => {
    const { inside, agent } = client(),
      asked = agent.exec(['true']),
      stdout = randomBytes(1 << 20),
      stderr = randomBytes(1 << 19),
      answer = { id: 1, ok: true, code: 3, timedOut: false, stopped: true, disturbed: false };
    inside.say({ ...answer, stdout: stdout.toString('base64'), stderr: stderr.toString('base64') });
    const r = await asked;
    expect([r.stdout.equals(stdout), r.stderr.equals(stderr), r.code]).toEqual([true, true, 3]);
    // A NUL that is not escaped is no JSON.
    const other = client(),
      cheated = other.agent.exec(['true']);
    other.inside.say(
      `{"id":1,"ok":true,"code":0,"stdout":"\u00000","stderr":"${'A'.repeat(1 << 20)}","timedOut":false,"stopped":false}\n`,
    );
    await expect(cheated).rejects.toMatchObject({ kind: 'desktop.lost' });
  });

  it('may be as long as what was asked for: two full outputs, a part of a file', () => {
    expect(longestLine([])).toBe(4 << 10);
    expect(longestLine(['spawn', 'ping'])).toBe(64 << 10);
    expect(longestLine(['ping', 'exec'])).toBeGreaterThan((2 * (8 << 20) * 4) / 3);
    expect(longestLine(['read'])).toBeGreaterThan(((4 << 20) * 4) / 3);
    expect(longestLine(['exec', 'read'])).toBeLessThan(32 << 20);
    expect(Object.keys(ANSWERS).sort()).toEqual(
      'exec forward freeze kill ping read relieve reset settle spawn state thaw write'.split(' '),
    );
  });

  it('of a few bytes at a time is the same line, and no more memory than its own', async () => {
    const stdout = Buffer.alloc(3000, 'x').toString('base64'),
      rest = { code: 0, stdout, stderr: '', timedOut: false, stopped: false, disturbed: false },
      text = Buffer.from(
        [
          { event: 'exit', pid: 7, name: 'x', code: 0, signal: null },
          { id: 1, ok: true, ...rest },
          { id: 2, ok: true },
        ]
          .map((l) => `${JSON.stringify(l)}\n`)
          .join(''),
      );
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 9 }), async (sizes) => {
        const { inside, agent } = client(),
          exits: unknown[] = [],
          out = agent.exec(['true']),
          pong = agent.ping();
        agent.onExit((e) => exits.push(e));
        for (let at = 0, i = 0; at < text.length; i++) {
          const n = sizes[i % sizes.length]!;
          inside.push(text.subarray(at, at + n));
          at += n;
        }
        expect((await out).stdout).toEqual(Buffer.alloc(3000, 'x'));
        await pong;
        expect(exits.length).toBe(1);
      }),
      { numRuns: 25 },
    );
  });

  const exit = { event: 'exit', pid: 7, name: 'xterm', code: 0, signal: null };
  it('that tells of an exit is short, also while a long answer is awaited', async () => {
    const { inside, agent } = client(),
      asked = agent.exec(['true']);
    inside.say({ ...exit, junk: 'x'.repeat(5000) });
    await expect(asked).rejects.toMatchObject({ message: expect.stringMatching(/too long for an event/) as string });
    // The longest name that there is, all of it escaped.
    const other = client(),
      exits: unknown[] = [];
    other.agent.onExit((e) => exits.push(e));
    other.inside.say(`${JSON.stringify({ ...exit, name: 'N' }).replace('N', '\\u0001'.repeat(255))}\n`);
    await expect.poll(() => exits.length, { interval: 1 }).toBe(1);
  });

  it('that tells of an exit comes no oftener than programs are started', async () => {
    const { inside, agent, lost } = client();
    let exits = 0;
    agent.onExit(() => exits++);
    const reset = agent.reset({ width: 9, height: 9, a11y: false, timeoutMs: 9, xDataMb: 9 });
    inside.say({ id: 1, ok: true, ms: 1, xpid: 2, display: 0, doubleClickMs: 400, walled: true });
    await reset;
    const spawned = [agent.spawn(['a']), agent.spawn(['b'])];
    inside.say({ id: 2, ok: true, pid: 3 });
    inside.say({ id: 3, ok: true, pid: 4 });
    await Promise.all(spawned);
    for (let n = 0; n < 1000; n++) inside.say(exit);
    expect(await lost).toMatchObject({ message: expect.stringMatching(/more exits than/) as string });
    expect(exits).toBe(2 * 32 + 2);
  });

  it('that refuses a name never comes of one that no file can have: the desktop is not asked', async () => {
    const { inside, agent } = client(),
      long = `/${'ö'.repeat(2048)}`;
    const refusals = [
      () => agent.read(long),
      () => agent.write(long, Buffer.alloc(1)),
      () => agent.exec([long, 'x']),
      () => agent.spawn([long]),
    ];
    for (const ask of refusals)
      await expect(ask()).rejects.toMatchObject({
        kind: 'desktop.exec',
        error: { details: { code: 'ENAMETOOLONG' } },
        message: expect.stringMatching(/^.{1,200}File name too long\.$/) as string,
      });
    expect(inside.asked).toEqual([]);
    expect(agent.isClosed).toBe(false);
    // The longest that may be asked for, refused with every byte of it escaped.
    const name = '\u0001'.repeat(4095),
      read = agent.read(name);
    inside.say({ id: 1, ok: false, error: `${name}: No such file or directory`, code: 'ENOENT' });
    await expect(read).rejects.toMatchObject({ error: { details: { code: 'ENOENT' } } });
    expect(agent.isClosed).toBe(false);
  });

  it('a file that has no end is refused after 128 MB', async () => {
    const { inside, agent } = client();
    const part = Buffer.alloc(4 << 20).toString('base64');
    const read = agent.read('/endless');
    const refused = expect(read).rejects.toMatchObject({ error: { details: { code: 'EFBIG' } } });
    let over = false;
    void read.catch(() => {
      over = true;
    });
    for (let n = 0; !over && n < 50; n++) {
      inside.say({ id: inside.asked.at(-1)!.id, ok: true, data: part, more: true });
      await new Promise(setImmediate);
    }
    await refused;
    expect(inside.asked.length).toBe(33);
  });
});

describe('a file that is written', () => {
  const parts = (inside: Inside): { offset: number; bytes: number }[] =>
    inside.asked
      .filter((m): m is (typeof inside.asked)[number] & { offset: number; data: string } => m.cmd === 'write')
      .map(({ offset, data }) => ({ offset, bytes: Buffer.from(data, 'base64').length }));

  it('is sent a megabyte at a time, and what else is asked comes in between', async () => {
    const { inside, agent } = client(),
      written = agent.write('/f', Buffer.alloc(5 << 19));
    expect(parts(inside)).toEqual([{ offset: 0, bytes: 1 << 20 }]);
    const pong = agent.ping();
    for (let id = 1; id <= 4; id++) {
      await expect.poll(() => inside.asked.length, { interval: 1 }).toBeGreaterThanOrEqual(id);
      inside.say({ id, ok: true });
    }
    await Promise.all([written, pong]);
    expect(inside.asked.map((m) => m.cmd)).toEqual(['write', 'ping', 'write', 'write']);
    expect(parts(inside)).toEqual([0, 1, 2].map((n) => ({ offset: n << 20, bytes: n < 2 ? 1 << 20 : 1 << 19 })));
  });

  it('is made also when it is empty, and no more of it is sent once a part was refused', async () => {
    const { inside, agent } = client(),
      empty = agent.write('/f', Buffer.alloc(0));
    inside.say({ id: 1, ok: true });
    await empty;
    expect(parts(inside)).toEqual([{ offset: 0, bytes: 0 }]);
    const full = agent.write('/f', Buffer.alloc(3 << 20));
    inside.say({ id: 2, ok: false, error: 'full', code: 'ENOSPC' });
    await expect(full).rejects.toMatchObject({ error: { details: { code: 'ENOSPC' } } });
    expect(inside.asked.length).toBe(2);
  });
});
