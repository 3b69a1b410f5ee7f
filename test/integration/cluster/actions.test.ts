import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SandboxDesktop } from '../../../runtime/cluster/drivers/desktop.js';
import { Input } from '../../../runtime/cluster/drivers/input.js';
import { X11Client } from '../../../runtime/cluster/drivers/x11Client.js';
import type { Desktop, SettleOptions } from '../../../runtime/cluster/types.js';
import type { Action } from '../../../runtime/domain/index.js';
import {
  localProvider,
  sandboxRecord,
  sh,
  SMALL,
  untilSettled,
  whyNoLocalDesktops,
} from '../../helpers/cluster/desktops.js';
import { SlowLink } from '../../helpers/cluster/slowLink.js';

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

/** xev's window reports every event it gets: what an application really sees. */
describe.skipIf(why)('every action reaches applications', () => {
  const p = localProvider();
  let d: Desktop;
  beforeAll(async () => {
    d = await p.create(SMALL);
  });
  afterAll(() => p.dispose());
  beforeEach(async () => {
    await p.reset(d);
  });

  /** However long the machine takes: what is looked at here is what arrives, not when. */
  const rest = (o?: SettleOptions): Promise<unknown> => untilSettled(d, o);
  const act = async (...actions: Action[]): Promise<void> => {
    for (const a of actions) {
      await d.perform(a);
      await rest();
    }
  };

  /**
   * Start xev in a window that covers the middle of the screen; returns a function that gives its log so far, in one
   * line per event.
   */
  async function watch(): Promise<() => Promise<string[]>> {
    await d.spawn(['sh', '-c', 'exec xev -geometry 400x200+50+50 > /tmp/xev.log 2>&1']);
    await sh(d, 'until grep -q MapNotify /tmp/xev.log 2>/dev/null; do sleep 0.02; done');
    await rest();
    await act({ type: 'click', at: { x: 200, y: 150 } });
    const skip = (await d.readFile('/tmp/xev.log')).length;
    return async () => {
      await rest();
      const text = (await d.readFile('/tmp/xev.log')).subarray(skip).toString();
      return text.split('\n\n').flatMap((e) => {
        const kind = /^(\w+) event/m.exec(e)?.[1];
        if (kind === 'ButtonPress' || kind === 'ButtonRelease')
          return [`${kind} ${/button (\d+)/.exec(e)![1]} state ${/state (0x[0-9a-f]+)/.exec(e)![1]}`];
        if (kind === 'KeyPress' || kind === 'KeyRelease')
          return [`${kind} ${/keysym 0x[0-9a-f]+, ([^)]+)\)/.exec(e)![1]} state ${/state (0x[0-9a-f]+)/.exec(e)![1]}`];
        return [];
      });
    };
  }

  /** How far apart presses may be that applications take for a double click. */
  const doubleClickMs = async (): Promise<number> =>
    Number(await sh(d, "sed -n 's/^gtk-double-click-time=//p' /etc/gtk-3.0/settings.ini")) || 400;
  /** When the last `n` presses were made by the server's clock, ms, in pairs. */
  async function pairs(n: number): Promise<(readonly [number, number])[]> {
    const said = await sh(d, `grep -A1 ButtonPress /tmp/xev.log | grep -o 'time [0-9]*' | tail -${n}`),
      times = said.split('\n').map((t) => Number(t.slice(5)));
    expect(times).toHaveLength(n);
    return Array.from({ length: n / 2 }, (_, i) => [times[2 * i]!, times[2 * i + 1]!] as const);
  }

  it('click, right click, double click and modifiers', async () => {
    const log = await watch();
    await act({ type: 'click', at: { x: 100, y: 150 } });
    await act({ type: 'right_single', at: { x: 300, y: 150 } });
    const single = await log();
    await act({ type: 'left_double', at: { x: 200, y: 200 } });
    const double = (await log()).slice(single.length),
      presses = double.filter((l) => l.startsWith('ButtonPress')).length;
    // Two presses, and two more as often as they came too slowly on a busy machine.
    expect([2, 4, 6]).toContain(presses);
    expect(double).toEqual(Array(presses).fill(['ButtonPress 1 state 0x0', 'ButtonRelease 1 state 0x100']).flat());
    const [first, second] = (await pairs(presses)).at(-1)!;
    expect(second - first).toBeLessThan(await doubleClickMs());
    await act({ type: 'click', at: { x: 120, y: 200 }, modifiers: ['ctrl', 'shift'] });
    expect([...single, ...(await log()).slice(single.length + double.length)]).toEqual([
      'ButtonPress 1 state 0x0',
      'ButtonRelease 1 state 0x100',
      'ButtonPress 3 state 0x0',
      'ButtonRelease 3 state 0x400',
      'KeyPress Control_L state 0x0',
      'KeyPress Shift_L state 0x4',
      'ButtonPress 1 state 0x5',
      'ButtonRelease 1 state 0x105',
      'KeyRelease Shift_L state 0x5',
      'KeyRelease Control_L state 0x4',
    ]);
  });

  it('scroll in four directions', async () => {
    const log = await watch();
    await act(
      { type: 'scroll', at: { x: 200, y: 150 }, direction: 'up', amount: 1 },
      { type: 'scroll', at: { x: 200, y: 150 }, direction: 'down', amount: 2 },
      { type: 'scroll', at: { x: 200, y: 150 }, direction: 'left', amount: 1 },
      { type: 'scroll', at: { x: 200, y: 150 }, direction: 'right', amount: 1 },
    );
    expect((await log()).filter((l) => l.startsWith('ButtonPress')).map((l) => l.split(' ')[1])).toEqual([
      '4',
      '5',
      '5',
      '6',
      '7',
    ]);
  });

  it('hotkeys press in order and release in reverse', async () => {
    const log = await watch();
    await act(
      { type: 'hotkey', keys: ['ctrl', 'shift', 'N'] },
      { type: 'hotkey', keys: ['pagedown'] },
      { type: 'hotkey', keys: ['ctrl', '?'] },
      { type: 'hotkey', keys: ['super', 'f4'] },
    );
    expect((await log()).map((l) => l.replace(/ state.*/, ''))).toEqual([
      'KeyPress Control_L',
      'KeyPress Shift_L',
      'KeyPress N',
      'KeyRelease N',
      'KeyRelease Shift_L',
      'KeyRelease Control_L',
      'KeyPress Next',
      'KeyRelease Next',
      'KeyPress Control_L',
      'KeyPress Shift_L',
      'KeyPress question',
      'KeyRelease question',
      'KeyRelease Shift_L',
      'KeyRelease Control_L',
      'KeyPress Super_L',
      'KeyPress F4',
      'KeyRelease F4',
      'KeyRelease Super_L',
    ]);
  });

  it('drag moves with the button held', async () => {
    const log = await watch();
    await act({ type: 'drag', from: { x: 100, y: 100 }, to: { x: 300, y: 200 } });
    expect((await log()).filter((l) => l.startsWith('Button'))).toEqual([
      'ButtonPress 1 state 0x0',
      'ButtonRelease 1 state 0x100',
    ]);
    expect(await sh(d, 'xdotool getmouselocation')).toMatch(/^x:300 y:200 /);
    const held = await sh(d, "grep -A2 MotionNotify /tmp/xev.log | grep -c 'state 0x100'");
    expect(Number(held)).toBeGreaterThanOrEqual(3);
  });

  it('two quick single clicks on one spot are not a double click', async () => {
    const log = await watch();
    await d.perform({ type: 'click', at: { x: 200, y: 150 } });
    await d.perform({ type: 'click', at: { x: 200, y: 150 } });
    expect((await log()).filter((l) => l.startsWith('ButtonPress'))).toHaveLength(2);
    const [[first, second]] = (await pairs(2)) as [readonly [number, number]];
    expect(second - first).toBeGreaterThan(await doubleClickMs());
  });

  it('a double click is pressed again, by the server, when the machine or the link is slower than its presses', async () => {
    const log = await watch(),
      at = { x: 200, y: 150 },
      doubleClickMs = 400;
    const input = await Input.create((d as SandboxDesktop).session!.x, {
      doubleClickMs,
      idle: () => sleep(doubleClickMs + 50),
    });
    await input.perform({ type: 'left_double', at });
    const presses = (await log()).filter((l) => l.startsWith('ButtonPress')).length;
    // Once more, or twice where the server itself stood still meanwhile.
    expect([4, 6]).toContain(presses);
    const all = await pairs(presses),
      apart = all.map(([first, second]) => second - first);
    for (const ms of apart.slice(0, -1)) expect(ms).toBeGreaterThanOrEqual(doubleClickMs);
    expect(apart.at(-1)).toBeLessThan(doubleClickMs);
    // And no third one with them.
    for (let i = 1; i < all.length; i++) expect(all[i]![0] - all[i - 1]![1]).toBeGreaterThan(doubleClickMs);
  });

  it("a person's double click over a slow link is one, and its presses last long enough to be seen", async () => {
    const log = await watch(),
      { processes } = sandboxRecord(d.id),
      link = new SlowLink(`/proc/${processes.at(-1)!.pid}/root/tmp/.X11-unix/X0`, 500),
      x = await X11Client.over(link, SMALL.screen);
    try {
      const { live } = await Input.create(x, { doubleClickMs: 400, idle: () => Promise.resolve() });
      let answers = 0;
      link.on('data', () => answers++);
      for (const down of [true, false, true, false])
        await live.send([{ type: 'button', button: 'left', down, x: 200, y: 150 }]);
      // None is waited for: a second press that comes after one is no double click any more.
      expect(answers).toBe(0);
      await x.sync();
      expect((await log()).map((l) => l.split(' ')[0])).toEqual([
        'ButtonPress',
        'ButtonRelease',
        'ButtonPress',
        'ButtonRelease',
      ]);
      const times = (await sh(d, "grep -A1 '^Button' /tmp/xev.log | grep -o 'time [0-9]*' | tail -4"))
        .split('\n')
        .map((t) => Number(t.slice(5)));
      for (const press of [0, 2]) expect(times[press + 1]! - times[press]!).toBeGreaterThanOrEqual(10);
    } finally {
      x.close();
    }
  });

  it('a key is pressed once, however long the machine stands still before its release', async () => {
    const log = await watch(),
      input = await Input.create((d as SandboxDesktop).session!.x, { doubleClickMs: 400, idle: () => sleep(1200) });
    await input.perform({ type: 'hotkey', keys: ['ctrl', 'v'] });
    expect((await log()).filter((l) => l.startsWith('KeyPress v'))).toHaveLength(1);
  });

  /** Type into an editor, save by keyboard, and read the file. */
  async function typed(text: string): Promise<string> {
    await d.writeFile('/home/user/t.txt', Buffer.alloc(0));
    await d.spawn(['mousepad', '/home/user/t.txt']);
    await sh(d, 'until wmctrl -l | grep -q t.txt; do sleep 0.02; done');
    await rest({ horizonMs: 250 });
    await act({ type: 'type', text }, { type: 'hotkey', keys: ['ctrl', 's'] });
    await rest({ horizonMs: 100 });
    return (await d.readFile('/home/user/t.txt')).toString();
  }

  it('types 500 characters exactly', async () => {
    const text = Array.from({ length: 500 }, (_, i) => String.fromCharCode(32 + ((i * 37) % 95)))
      .join('')
      .replaceAll('  ', ' x');
    expect(await typed(text)).toBe(text);
  });

  it('types Unicode, more different characters than the keyboard has room for', async () => {
    const text = `Grüße, Ōsaka — «日本語» \t… naïve ☕ 😀\n${Array.from({ length: 90 }, (_, i) => String.fromCodePoint(0x0391 + (i % 80) + (i >= 17 && i < 80 ? 1 : 0))).join('')}`;
    expect(await typed(text)).toBe(text);
  });

  it('types into a terminal', async () => {
    await d.spawn(['xterm']);
    await sh(d, 'until wmctrl -l | grep -q .; do sleep 0.02; done');
    await rest({ horizonMs: 100 });
    await act({ type: 'type', text: 'printf "%s" "Żółć {a|b} ~/$((2+3))" > out.txt\n' });
    await sh(d, 'until [ -s out.txt ]; do sleep 0.02; done');
    expect((await d.readFile('/home/user/out.txt')).toString()).toBe('Żółć {a|b} ~/5');
  });

  it('a click on the tray starts a program, every time', async () => {
    for (let i = 1; i <= 3; i++) {
      await act({ type: 'click', at: { x: 54, y: 387 } });
      await sh(d, `until [ "$(wmctrl -l | grep -c galculator)" -ge ${i} ]; do sleep 0.02; done`);
    }
  });

  it('a double click opens a folder, a drag moves a file into it', async () => {
    await d.writeFile('/home/user/a.txt', Buffer.from('a'));
    await d.spawn(['pcmanfm', '/home/user']);
    await sh(d, 'until wmctrl -l | grep -q user; do sleep 0.02; done');
    await rest({ horizonMs: 250 });
    // The icons are laid out in a row: Desktop, Documents, Downloads, a.txt.
    await act({ type: 'drag', from: { x: 470, y: 130 }, to: { x: 285, y: 130 } });
    await sh(d, 'until [ -e Documents/a.txt ] || [ $((i=i+1)) -gt 250 ]; do sleep 0.02; done');
    expect(await sh(d, 'ls Documents')).toBe('a.txt');
    await rest({ horizonMs: 1000 }); // the file manager takes note of moved files half a second later
    const opened = async (): Promise<void> => {
      await sh(d, 'until wmctrl -l | grep -q Documents || [ $((i=i+1)) -gt 250 ]; do sleep 0.02; done');
      expect(await sh(d, 'wmctrl -l')).toMatch(/Documents/);
    };
    await act({ type: 'left_double', at: { x: 285, y: 130 } });
    await opened();
    await act({ type: 'hotkey', keys: ['alt', 'up'] });
    await sh(d, 'until wmctrl -l | grep -q user; do sleep 0.02; done');
    await rest({ horizonMs: 1000 });
    // Over a slow link.
    const slow = await Input.create((d as SandboxDesktop).session!.x, { doubleClickMs: 400, idle: () => sleep(450) });
    await slow.perform({ type: 'left_double', at: { x: 285, y: 130 } });
    await opened();
  });

  it('waits, and refuses terminal actions and nonsense', async () => {
    await d.perform({ type: 'wait', ms: 1 });
    await expect(d.perform({ type: 'finished' })).rejects.toMatchObject({ kind: 'policy.invalid' });
    await expect(d.perform({ type: 'click', at: { x: NaN, y: 1 } })).rejects.toMatchObject({ kind: 'policy.invalid' });
    await expect(d.perform({ type: 'hotkey', keys: ['hyperspace'] })).rejects.toMatchObject({ kind: 'policy.invalid' });
    await d.perform({ type: 'click', at: { x: 9999, y: -5 } });
    expect(await sh(d, 'xdotool getmouselocation')).toMatch(/^x:639 y:0 /);
  });
});
