import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runHolder } from '../../../runtime/data/store/runLock.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { bundle } from '../../helpers/data/manager.js';
import { otherNetwork, otherProcesses, otherUser } from '../../helpers/machine/namespaces.js';
import { node24 } from '../../helpers/machine/otherNode.js';

let program: string, newer: string, dir: string;
const here = process.execPath,
  children = new Set<Child>();

beforeAll(async () => {
  [{ file: program }, newer] = await Promise.all([bundle('test/helpers/data/lockChild.ts', 'lockChild'), node24()]);
});
afterAll(async () => {
  if (program) await rm(dirname(program), { recursive: true, force: true });
});
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'dart-run-lock-'));
});
afterEach(async () => {
  await Promise.all([...children].map((c) => c.kill()));
  children.clear();
  await rm(dir, { recursive: true, force: true });
});

interface Said {
  ready?: string;
  held?: number;
  refused?: { kind: string }[];
  acknowledged?: string;
  done?: boolean;
  kind?: string;
}
/** A process of lockChild.ts that is told to act line by line. */
class Child {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  #errors = '';
  constructor(command: readonly string[]) {
    this.#process = spawn(command[0]!, command.slice(1));
    this.#ended = once(this.#process, 'close');
    this.#process.stderr.on('data', (d: Buffer) => {
      this.#errors += d.toString();
    });
    this.#process.stdin.on('error', () => undefined);
    this.#lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
    children.add(this);
  }
  async next(): Promise<Said> {
    const line = await this.#lines.next();
    if (line.done) throw new Error(`the child ended: ${this.#errors}`);
    return JSON.parse(line.value) as Said;
  }
  tell(text = ''): void {
    this.#process.stdin.write(`${text}\n`);
  }
  async ask(text = ''): Promise<Said> {
    this.tell(text);
    return this.next();
  }
  async kill(): Promise<void> {
    // A process of another user is not ours to kill: it ends with its input.
    this.#process.kill('SIGKILL');
    this.#process.stdin.end();
    await this.#ended;
  }
}
async function child(
  mode: 'lock' | 'write',
  o: { node?: string; in?: (command: readonly string[]) => string[] } = {},
): Promise<Child> {
  const command = [o.node ?? here, program, mode, dir],
    c = new Child(o.in ? o.in(command) : command);
  expect((await c.next()).ready).toMatch(o.node ? /^24\./ : /^\d+\./);
  return c;
}
const refusals = (s: Said): string[] => (s.refused ?? []).map((r) => r.kind);

describe('one writer per run folder', () => {
  const places: [string, Parameters<typeof child>[1]][] = [
    [
      'a Node of another generation',
      {
        get node() {
          return newer;
        },
      },
    ],
    ['another network namespace', { in: otherNetwork }],
    ['another process namespace', { in: otherProcesses }],
    [
      'all of these',
      {
        get node() {
          return newer;
        },
        in: otherProcesses,
      },
    ],
  ];
  for (const [name, place] of places)
    it(`holds between this Node and ${name}, either way round, and falls with the holder`, async () => {
      for (const order of [
        [{}, place],
        [place, {}],
      ]) {
        const first = await child('lock', order[0]),
          second = await child('lock', order[1]);
        expect(await first.ask()).toMatchObject({ held: 1 });
        const refused = await second.ask();
        expect(refused.held).toBe(0);
        expect(refusals(refused)).toEqual(['run.busy', 'run.busy', 'run.busy']);
        expect(await runHolder(dir)).toMatchObject({ pid: expect.any(Number) as number });
        await first.kill();
        expect(await second.ask()).toMatchObject({ held: 1 });
        await second.kill();
        expect(await runHolder(dir)).toBeUndefined();
      }
    });

  it('refuses a second writer, and every acknowledged record is read back', async () => {
    const acknowledged: string[] = [];
    const first = await child('write'),
      second = await child('write', { node: newer }),
      third = await child('write', { in: otherNetwork });
    /** Writes at the same time; those refused are told so at once. */
    const write = async (c: Child, count: number): Promise<string> => {
      c.tell(String(count));
      for (;;) {
        const said = await c.next();
        if (said.acknowledged) acknowledged.push(said.acknowledged);
        else return said.done ? 'done' : (said.kind ?? '');
      }
    };
    const all = await Promise.all([write(first, 40), write(second, 40), write(third, 40)]);
    expect(all.sort()).toEqual(['done', 'run.busy', 'run.busy']);
    expect(acknowledged).toHaveLength(40);
    const again = await Promise.all([write(first, 5), write(second, 5), write(third, 5)]);
    expect(again.sort()).toEqual(['done', 'run.busy', 'run.busy']);
    for (const c of [first, second, third]) await c.kill();
    const next = await child('write', { node: newer });
    expect(await write(next, 10)).toBe('done');
    await next.kill();

    const reader = await RunReader.open(dir, { index: 'local' });
    const read: string[] = [];
    for await (const e of reader.events()) if (e.type === 'log') read.push(e.message);
    await reader.close();
    expect(acknowledged).toHaveLength(55);
    expect(read).toEqual(acknowledged);
  });

  it('passes to exactly one of many when its holder is killed', async () => {
    const racers = await Promise.all(
      Array.from({ length: 9 }, (_, i) =>
        child('lock', i % 3 === 0 ? { node: newer } : i % 3 === 1 ? { in: otherNetwork } : {}),
      ),
    );
    let holder: Child | undefined;
    while (racers.length > 1) {
      // All are told while the kill is under way: some find the holder alive, dying, or dead.
      const killed = holder?.kill();
      const answers = await Promise.all(racers.map((c) => c.ask()));
      await killed;
      let winners = racers.filter((_, i) => answers[i]!.held === 1);
      expect(answers.reduce((n, a) => n + a.held!, 0)).toBeLessThanOrEqual(1);
      for (const a of answers) expect(new Set(refusals(a))).toEqual(new Set(['run.busy']));
      if (winners.length === 0) {
        const again = await Promise.all(racers.map((c) => c.ask()));
        expect(again.reduce((n, a) => n + a.held!, 0)).toBe(1);
        winners = racers.filter((_, i) => again[i]!.held === 1);
      }
      expect(winners).toHaveLength(1);
      holder = winners[0];
      racers.splice(racers.indexOf(holder!), 1);
    }
    expect((await readdir(join(dir, 'lock'))).filter((n) => !n.startsWith('new-'))).toHaveLength(1);
  }, 240_000);
});

describe('another user', () => {
  const nameOf = (path: string): string =>
    `dart-studio-run-${createHash('sha256').update(realpathSync(path)).digest('hex').slice(0, 32)}`;
  /** Holds an abstract name the way version 0.1 did, and floods whoever connects. */
  const squatter = (name: string): string[] => [
    here,
    '-e',
    `process.stdin.resume().on('end', () => process.exit());
     const flood = (s) => { s.on('error', () => {}); const b = Buffer.alloc(1 << 20); const go = () => { while (s.write(b)); }; s.on('drain', go); go(); };
     require('net').createServer(flood).listen('\\0' + ${JSON.stringify(name)}, () => console.log('{"ready":"held"}'));`,
  ];

  it('that holds the name of version 0.1 and floods it neither locks anybody out nor is heard', async () => {
    const squat = new Child(otherUser(squatter(nameOf(dir))));
    expect(await squat.next()).toEqual({ ready: 'held' });
    const c = await child('lock');
    expect(await c.ask()).toMatchObject({ held: 1 });
    await c.kill();
  });
  it('of our own that holds it is a writer of version 0.1, and is not disturbed', async () => {
    for (const node of [here, newer]) {
      const [, ...args] = squatter(nameOf(dir)),
        old = new Child([node, ...args]);
      expect(await old.next()).toEqual({ ready: 'held' });
      const c = await child('lock');
      const said = await c.ask();
      expect(said.held).toBe(0);
      expect(refusals(said)).toEqual(['run.busy', 'run.busy', 'run.busy']);
      await old.kill();
      expect(await c.ask()).toMatchObject({ held: 1 });
      await c.kill();
    }
  });
  it('can neither take nor keep the lock of a folder that others may look into', async () => {
    await chmod(dir, 0o755);
    const holder = await child('lock');
    expect(await holder.ask()).toMatchObject({ held: 1 });
    const script = `const fs = require('fs'), d = process.argv[1];
      const t = (f) => { try { f(); return 'done'; } catch (e) { return e.code; } };
      console.log(JSON.stringify({ kind: [t(() => fs.mkdirSync(d + '/lock/2')), t(() => fs.rmSync(d + '/lock/1', { recursive: true })),
        t(() => fs.openSync(d + '/lock/1/alive', 'r')), t(() => fs.writeFileSync(d + '/lock/1/owner.json', ''))].join() }));`;
    const other = new Child(otherUser([here, '-e', script, dir]));
    expect((await other.next()).kind).toBe('EACCES,EACCES,EACCES,EACCES');
    await holder.kill();
    const next = await child('lock');
    expect(await next.ask()).toMatchObject({ held: 1 });
  });
});
