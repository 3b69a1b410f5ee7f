import type { Size } from '../../../../domain/index.js';
import type { Check, Scene, SetupPlan, Template } from '../kit.js';
import type { Box } from '../box.js';
import { FRAME, INFEASIBLE, geometry, judgedBy, pickSome, place, q, setup } from '../kit.js';
import type { Where } from '../moves.js';
import { clickBox, drag, finish, giveUp } from '../moves.js';
import { asking, others } from '../siblings.js';

/** The window manager, jwm: title bars, taskbar and menu. Sizes are those of overlay/etc/jwm/system.jwmrc. */

/** A window with a word in it and in its title. */
const card = (title: string, at: Box): SetupPlan['start'][number] => ({
  command: `exec yad ${[`--title=${title}`, `--text=${title}`, '--text-align=center', '--no-buttons', '--no-escape', `--geometry=${geometry(at)}`].map(q).join(' ')}`,
});
const CARD = { width: 170, height: 90 };

/** Windows side by side, each somewhere in its own part of the screen. */
export function cards(r: Scene, screen: Size, titles: readonly string[]): SetupPlan['start'] {
  const width = Math.floor(screen.width / titles.length);
  return titles.map((t, i) => card(t, place(r, screen, CARD.width, CARD.height, { x: i * width, width })));
}
/** Title bar buttons, from the right: close, maximize, minimize. */
export const titleButton =
  (title: string, fromRight: 0 | 1 | 2): Where =>
  async (s) => {
    const w = await s.window({ title });
    return { x: w.x + w.width + FRAME.side - 24 - 24 * fromRight, y: w.y - FRAME.top, width: 22, height: 22 };
  };
const titleBar =
  (title: string): Where =>
  async (s) => {
    const w = await s.window({ title });
    return { x: w.x + 30, y: w.y - FRAME.top, width: w.width - 110, height: FRAME.top };
  };
/** The taskbar's list: entry `i` of `n`, after the menu and the launchers. */
const TASKS = { x: 162, most: 180 };
const taskEntry =
  (i: number, n: number): Where =>
  (s) => {
    const width = Math.min(TASKS.most, Math.floor((s.screen.width - TASKS.x) / n));
    return Promise.resolve({ x: TASKS.x + i * width, y: s.screen.height - FRAME.tray, width, height: FRAME.tray });
  };
/** The menu, bottom left; entries in the order of the configuration. */
const MENU = [
  ['Calculator', 'galculator'],
  ['Files', 'pcmanfm'],
  ['Spreadsheet', 'gnumeric'],
  ['Terminal', 'xterm'],
  ['Text Editor', 'mousepad'],
] as const;
const menuButton: Where = (s) =>
  Promise.resolve({ x: 0, y: s.screen.height - FRAME.tray, width: 40, height: FRAME.tray });
const menuEntry =
  (i: number): Where =>
  (s) =>
    Promise.resolve({ x: 2, y: s.screen.height - FRAME.tray - 21 * (MENU.length - i), width: 110, height: 21 });
const launcher =
  (i: number): Where =>
  (s) =>
    Promise.resolve({ x: 42 + 24 * i, y: s.screen.height - FRAME.tray, width: 22, height: FRAME.tray });

export const titlesAre = (titles: readonly string[]): Check => ({
  command: `wmctrl -l | awk '{ print $NF }' | sort`,
  prints: [...titles]
    .sort()
    .map((t) => `${t}\n`)
    .join(''),
});
export const stateOf = (title: string): string => `xprop -name ${q(title)} _NET_WM_STATE`;
/** The classes of all windows. */
const running = (apps: readonly string[]): Check => ({
  withinMs: 1500,
  command: 'wmctrl -lx | awk \'{ n = split($3, a, "."); print tolower(a[n]) }\' | sort -u',
  prints: [...apps]
    .sort()
    .map((a) => `${a}\n`)
    .join(''),
});

export const windowTemplates: readonly Template[] = [
  {
    name: 'window-close',
    apps: ['jwm'],
    steps: 1,
    build(r, screen) {
      const titles = pickSome(r, r.words.items, 3),
        i = r.int(3),
        other = titles[(i + 1) % 3]!;
      return {
        ...asking(
          (n) => [`Close the window "${titles[n]!}".`, titlesAre(titles.filter((_, k) => k !== n))],
          i,
          others(3, i),
        ),
        config: setup(r, { start: cards(r, screen, titles) }),
        solve: [clickBox(titleButton(titles[i]!, 0)), finish],
        miss: [clickBox(titleButton(other, 0)), finish],
      };
    },
  },
  {
    name: 'window-minimize',
    apps: ['jwm'],
    steps: 1,
    build(r, screen) {
      const titles = pickSome(r, r.words.items, 3),
        i = r.int(3),
        other = titles[(i + 1) % 3]!;
      return {
        ...asking(
          (n) => [
            `Minimize the window "${titles[n]!}".`,
            {
              command: titles.map((t) => `${stateOf(t)} | grep -c HIDDEN`).join('; '),
              prints: titles.map((_, k) => (k === n ? '1\n' : '0\n')).join(''),
            },
          ],
          i,
          others(3, i),
        ),
        config: setup(r, { start: cards(r, screen, titles) }),
        solve: [clickBox(titleButton(titles[i]!, 2)), finish],
        miss: [clickBox(titleButton(other, 2)), finish],
      };
    },
  },
  {
    name: 'window-raise',
    apps: ['jwm'],
    steps: 1,
    build(r, screen) {
      const titles = pickSome(r, r.words.items, 4),
        i = r.int(3),
        wrong = (i + 1) % 3,
        at = place(r, screen, 240, 120);
      return {
        // The last is in front already.
        ...asking(
          (n) => [
            `Bring the window "${titles[n]!}" to the front with the taskbar.`,
            { command: 'xdotool getactivewindow getwindowname', prints: `${titles[n]!}\n` },
          ],
          i,
          others(3, i),
        ),
        config: setup(r, { start: titles.map((t) => card(t, at)) }),
        solve: [clickBox(taskEntry(i, 4)), finish],
        miss: [clickBox(taskEntry(wrong, 4)), finish],
      };
    },
  },
  {
    name: 'window-maximize',
    apps: ['jwm'],
    steps: 1,
    heldout: true,
    build(r, screen) {
      const titles = pickSome(r, r.words.items, 2),
        i = r.int(2),
        other = titles[1 - i]!;
      return {
        instruction: `Make the window "${titles[i]!}" fill the screen.`,
        config: setup(r, { start: cards(r, screen, titles) }),
        evaluator: judgedBy({
          command: titles.map((t) => `${stateOf(t)} | grep -c MAXIMIZED_VERT`).join('; '),
          prints: titles.map((_, k) => (k === i ? '1\n' : '0\n')).join(''),
        }),
        solve: [clickBox(titleButton(titles[i]!, 1)), finish],
        miss: [clickBox(titleButton(other, 1)), finish],
      };
    },
  },
  {
    name: 'window-move',
    apps: ['jwm'],
    steps: 1,
    build(r, screen) {
      const [title, other] = pickSome(r, r.words.items, 2),
        half = Math.floor(screen.width / 2),
        free = screen.height - FRAME.tray;
      const at = place(r, screen, CARD.width, CARD.height, { width: half, height: Math.floor(free / 2) }),
        next = place(r, screen, CARD.width, CARD.height, {
          width: half,
          y: Math.floor(free / 2),
          height: free - Math.floor(free / 2),
        });
      const right: Where = () => Promise.resolve({ x: half + 150, y: 30, width: 64, height: 64 });
      const sides = (t: string): string =>
        `xwininfo -name ${q(t)} | awk '/Absolute upper-left X/ { print ($NF > ${half} ? "right" : "left") }'`;
      return {
        ...asking(
          (t) => [
            `Drag the window "${t}" into the right half of the screen.`,
            { command: `${sides(title)}; ${sides(other)}`, prints: t === title ? 'right\nleft\n' : 'left\nright\n' },
          ],
          title,
          [other],
        ),
        config: setup(r, { start: [card(title, at), card(other, next)] }),
        solve: [drag(titleBar(title), right), finish],
        miss: [drag(titleBar(other), right), finish],
      };
    },
  },
  {
    name: 'menu-start',
    apps: ['jwm', 'galculator', 'pcmanfm', 'xterm', 'mousepad', 'gnumeric'],
    steps: 2,
    build(r, screen) {
      const i = r.int(MENU.length),
        wrong = (i + 1 + r.int(MENU.length - 1)) % MENU.length,
        title = r.pick(r.words.items),
        bystander = card(title, place(r, screen, CARD.width, CARD.height, { x: 150 }));
      return {
        ...asking(
          (n) => [
            `Start the "${MENU[n]![0]}" program from the menu in the bottom left corner.`,
            running([MENU[n]![1], 'yad']),
          ],
          i,
          others(MENU.length, i),
        ),
        config: setup(r, { start: [bystander] }),
        solve: [clickBox(menuButton), clickBox(menuEntry(i)), finish],
        miss: [clickBox(menuButton), clickBox(menuEntry(wrong)), finish],
      };
    },
  },
  {
    name: 'tray-start',
    apps: ['jwm', 'galculator', 'pcmanfm', 'xterm', 'mousepad', 'gnumeric'],
    steps: 1,
    build(r, screen) {
      const i = r.int(MENU.length),
        wrong = (i + 1 + r.int(MENU.length - 1)) % MENU.length,
        title = r.pick(r.words.items),
        bystander = card(title, place(r, screen, CARD.width, CARD.height));
      return {
        ...asking(
          (n) => [`Start the "${MENU[n]![0]}" program with its icon in the taskbar.`, running([MENU[n]![1], 'yad'])],
          i,
          others(MENU.length, i),
        ),
        config: setup(r, { start: [bystander] }),
        solve: [clickBox(launcher(i)), finish],
        miss: [clickBox(launcher(wrong)), finish],
      };
    },
  },
  {
    name: 'window-missing',
    apps: ['jwm'],
    steps: 0,
    infeasible: true,
    build(r, screen) {
      const [absent, ...titles] = pickSome(r, r.words.items, 4);
      return {
        instruction: `Close the window "${absent}".`,
        config: setup(r, { start: cards(r, screen, titles) }),
        evaluator: INFEASIBLE,
        solve: [giveUp],
        miss: [clickBox(titleButton(titles[r.int(3)]!, 0)), finish],
      };
    },
  },
];
