import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  commandOf,
  notStarted,
  programOf,
  startOf,
  streamsOf,
} from '../../../runtime/cluster/providers/osworld/program.js';
import { LiveProgram } from '../../../runtime/cluster/providers/osworld/liveProgram.js';
import { programOf as eventsOf } from '../../../runtime/tasks/program.js';
import type { Action } from '../../../runtime/domain/index.js';
import type { DesktopInput } from '../../../runtime/cluster/types.js';

const screen = { width: 640, height: 400 };
const code = (a: Action): string => programOf(a, screen)[2]!;
/** What our own face makes of it. */
const events = (a: Action): unknown => {
  const p = eventsOf(code(a), screen, { x: 0, y: 0 });
  return typeof p === 'object' ? p.ops.flatMap((o) => (o.kind === 'input' ? o.events : [])) : p;
};

describe('actions for a server of OSWorld', () => {
  it('are what our own face performs without Python', () => {
    expect(events({ type: 'click', at: { x: 30, y: 40 } })).toEqual([
      { type: 'move', x: 30, y: 40 },
      { type: 'button', button: 'left', down: true, x: 30, y: 40 },
      { type: 'button', button: 'left', down: false, x: 30, y: 40 },
    ]);
    for (const a of [
      { type: 'left_double', at: { x: 1, y: 2 } },
      { type: 'right_single', at: { x: 1, y: 2 }, modifiers: ['ctrl'] },
      { type: 'drag', from: { x: 1, y: 2 }, to: { x: 60, y: 70 } },
      { type: 'scroll', at: { x: 5, y: 6 }, direction: 'down', amount: 3 },
      { type: 'hotkey', keys: ['ctrl', 's'] },
      { type: 'type', text: 'it\'s a < b\nand "c"' },
    ] satisfies Action[])
      expect(Array.isArray(events(a)), a.type).toBe(true);
  });
  it('never press <, which pyautogui writes as > (OSWorld, issue 257)', () => {
    expect(code({ type: 'type', text: 'a<b<<c' })).toMatch(
      /write\('a'\)\npyautogui\.hotkey\('shift', ','\)\npyautogui\.write\('b'\)\n(pyautogui\.hotkey\('shift', ','\)\n){2}pyautogui\.write\('c'\)$/,
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        const written = [...code({ type: 'type', text }).matchAll(/pyautogui\.write\((.*)\)$/gm)].map((m) => m[1]!);
        if (/^[\x20-\x7e\n\t]*$/.test(text)) expect(written.every((w) => !w.includes('<'))).toBe(true);
      }),
    );
  });
  it('go through the clipboard where no key has the character', () => {
    expect(code({ type: 'type', text: 'ünï' })).toContain(
      "import pyperclip; pyautogui.FAILSAFE = False; pyautogui.PAUSE = 0; pyperclip.copy('ünï')",
    );
    expect(code({ type: 'type', text: 'plain' })).not.toContain('pyperclip');
    // Once: the second of two pastes may overtake the first. A half of a character is none.
    expect(code({ type: 'type', text: 'é<ü\ud800' })).toMatch(/copy\('é<ü\ufffd'\)\n[^\n]*'ctrl', 'v'\)$/);
    expect(code({ type: 'hotkey', keys: ['ctrl', '<'] })).toContain("hotkey('ctrl', 'shift', ',')");
  });
});

describe('what a person does there', () => {
  const lines = (...e: DesktopInput[]): string[] => new LiveProgram(screen).lines(e);
  it('is moves, buttons and keys; of moves in a row the last', () => {
    expect(
      lines(
        { type: 'move', x: 1, y: 1 },
        { type: 'move', x: 700, y: -3 },
        { type: 'button', button: 'left', down: true, x: 5, y: 5 },
        { type: 'button', button: 'left', down: false, x: 9, y: 9 },
        { type: 'wheel', dx: 0, dy: 2, x: 9, y: 9 },
        { type: 'key', key: 'Enter', down: true },
        { type: 'key', key: 'Enter', down: false },
      ),
    ).toEqual([
      'pyautogui.moveTo(x=639, y=0)',
      "pyautogui.mouseDown(x=5, y=5, button='left')",
      "pyautogui.mouseUp(x=9, y=9, button='left')",
      'pyautogui.scroll(-2, x=9, y=9)',
      "pyautogui.press('enter')",
    ]);
  });
  it('holds modifiers for chords and not for characters, which come shifted already', () => {
    const p = new LiveProgram(screen);
    expect(
      p.lines([
        { type: 'key', key: 'Shift', down: true },
        { type: 'key', key: 'A', down: true },
      ]),
    ).toEqual([
      "pyautogui.keyDown('shift')",
      "pyautogui.keyUp('shift')",
      "pyautogui.write('A')",
      "pyautogui.keyDown('shift')",
    ]);
    expect(
      p.lines([
        { type: 'key', key: 'Control', down: true },
        { type: 'key', key: 'S', down: true },
      ]),
    ).toEqual(["pyautogui.keyDown('ctrl')", "pyautogui.press('s')"]);
    expect(p.lines([{ type: 'release' }])).toEqual(["pyautogui.keyUp('ctrl')", "pyautogui.keyUp('shift')"]);
    expect(p.lines([{ type: 'release' }])).toEqual([]);
  });
  it('is code that our own face performs, whatever was pressed', () => {
    const point = { x: fc.integer({ min: 0, max: 639 }), y: fc.integer({ min: 0, max: 399 }) },
      event: fc.Arbitrary<DesktopInput> = fc.oneof(
        fc.record({ type: fc.constant('move' as const), ...point }),
        fc.record({
          type: fc.constant('wheel' as const),
          dx: fc.constant(0),
          dy: fc.integer({ min: -3, max: 3 }),
          ...point,
        }),
        fc.record({
          type: fc.constant('key' as const),
          key: fc.constantFrom('a', 'Z', '%', 'Enter', 'Tab', 'F5', 'ArrowLeft', 'Delete', 'CapsLock', '<', ' '),
          down: fc.constant(true),
        }),
        fc.record({ type: fc.constant('text' as const), text: fc.constantFrom('abc', 'a < b', "it's") }),
      );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (all) => {
        const of = new LiveProgram(screen).lines(all);
        if (of.length > 0)
          expect(eventsOf(`import pyautogui\n${of.join('\n')}`, screen, { x: 0, y: 0 })).toBeInstanceOf(Object);
      }),
    );
  });
});

describe('commands for a server of OSWorld', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'dart-osworld-'));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));
  const run = (
    cmd: string[],
    o: { seconds?: number; stdin?: string; env?: Record<string, string> } = {},
  ): { code: number | null; stdout: Buffer; stderr: Buffer } => {
    const words = commandOf({
        cmd,
        cwd: dir,
        stdin: o.stdin ?? '/dev/null',
        seconds: o.seconds ?? 20,
        env: o.env ?? {},
      }),
      r = spawnSync(words[0]!, words.slice(1), { encoding: 'utf8', maxBuffer: 1 << 26 });
    return { code: r.status, ...streamsOf(r.stdout)! };
  };
  it('give bytes as they were printed, status, folder, variables and standard input', () => {
    writeFileSync(join(dir, 'in'), Buffer.from([0, 255, 10, 200]));
    const r = run(['sh', '-c', 'cat; printf "%s" "$A" >&2; pwd >&2; exit 3'], {
      stdin: join(dir, 'in'),
      env: { A: 'x y' },
    });
    expect(r).toEqual({ code: 3, stdout: Buffer.from([0, 255, 10, 200]), stderr: Buffer.from(`x y${dir}\n`) });
  });
  it('end when their time is up, and hold nobody up with what they leave running', () => {
    expect(run(['sh', '-c', 'echo early; exec sleep 60'], { seconds: 0.3 })).toMatchObject({
      code: 137,
      stdout: Buffer.from('early\n'),
    });
    expect(run(['sh', '-c', 'sleep 60 & echo done']).stdout.toString()).toBe('done\n');
  });
  it('say that a program is missing or cannot be run, and not that it failed', () => {
    writeFileSync(join(dir, 'plain'), 'no program', { mode: 0o644 });
    const missing = run(['/no/such/program']),
      plain = run([join(dir, 'plain')]),
      own = run(['sh', '-c', 'echo "no such thing" >&2; exit 127']);
    expect([missing, plain, own].map((r) => notStarted(r.code, r.stderr))).toEqual(['ENOENT', 'EACCES', undefined]);
    expect(notStarted(run(['/no/such'], { env: { A: '1' } }).code, missing.stderr)).toBe('ENOENT');
  });
  it('keep the beginning of a long output', () => {
    const { stdout, code: status } = run(['sh', '-c', 'head -c 9000000 /dev/zero']);
    expect([status, stdout.length]).toEqual([0, 2 << 20]);
  });
  it('that go on are started with a process of their own', () => {
    const words = startOf({ cmd: ['sh', '-c', 'echo $$ > pid; exec sleep 30'], cwd: dir, env: {} }),
      pid = Number(spawnSync(words[0]!, words.slice(1), { encoding: 'utf8' }).stdout);
    expect(pid).toBeGreaterThan(1);
    const none = startOf({ cmd: ['/no/such/program'], cwd: dir, env: { A: '1' } });
    expect(spawnSync(none[0]!, none.slice(1)).status).toBe(127);
    process.kill(pid, 'SIGKILL');
  });
  it('that print something else than our lines are told apart', () => {
    for (const said of [undefined, null, 5, '', 'one line', 'hello there!\nworld', 'AAAA\nB'])
      expect(streamsOf(said)).toBeUndefined();
    expect(streamsOf('aGk=\n\n')).toEqual({ stdout: Buffer.from('hi'), stderr: Buffer.alloc(0) });
  });
});
