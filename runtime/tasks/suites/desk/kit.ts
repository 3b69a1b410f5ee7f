import { shellWord } from '../../../foreign/shellQuoted.js';
import type { Random, Size } from '../../../domain/index.js';
import type { Evaluator, SetupStep } from '../../types.js';
import type { Box } from './box.js';
import type { Move } from './moves.js';
import { SQUARE, zoneOf, type Look, type Scene } from './scene.js';

export type { Look, Scene } from './scene.js';

/** A task made from a seed, and its two scripted runs. `solve` and `miss` end with `finished` (or `fail`). */
export interface Instance {
  readonly instruction: string;
  readonly config: readonly SetupStep[];
  readonly evaluator: Evaluator;
  readonly solve: readonly Move[];
  /** Almost right: must be judged a failure. */
  readonly miss: readonly Move[];
  /**
   * The other tasks that this screen could be of, likeliest first: what a failure may have done instead
   * (runtime/tasks/README.md#siblings). None of them holds before anything was done.
   */
  readonly siblings?: () => readonly Asked[];
}
/** A task's instruction, and how it is judged. */
export type Asked = Pick<Instance, 'instruction' | 'evaluator'>;

/**
 * A family of tasks: everything that varies is drawn from `r`, words from its lexicon; windows lie wholly inside `screen`.
 */
export interface Template {
  readonly name: string;
  readonly apps: readonly string[];
  /** Actions of the scripted solution without the final `finished`. */
  readonly steps: number;
  /** Never trained on. `fresh`: not considered when the templates of training were chosen (`fresh.ts`). */
  readonly heldout?: true | 'fresh';
  readonly infeasible?: true;
  build(r: Scene, screen: Size): Instance;
}

export const q = shellWord;

type Tuple<T, N extends number, Picked extends T[] = []> = number extends N
  ? T[]
  : Picked['length'] extends N
    ? Picked
    : Tuple<T, N, [...Picked, T]>;
/** n different elements. */
export const pickSome = <T, N extends number>(r: Random, xs: readonly T[], n: N): Tuple<T, N> =>
  r.shuffle(xs).slice(0, n) as Tuple<T, N>;

/** jwm's frame around a window's own area (overlay/etc/jwm/system.jwmrc), and the taskbar. */
export const FRAME = { side: 3, top: 22, bottom: 3, tray: 26 } as const;

/** Draws for a corner in the scene's zone; where a window has hardly any room it lies where it must. */
const PLACE_DRAWS = 64;

/** Pixels beside a window among which there are whole squares of two zones. */
const FREE = 2 * SQUARE;

/** A random place for a window whose own area is `width` x `height`: `x`, `y` are the frame's top left corner. */
export function place(r: Scene, screen: Size, width: number, height: number, region: Partial<Box> = {}): Box {
  const left = region.x ?? 0,
    top = region.y ?? 0;
  const right = left + (region.width ?? screen.width - left),
    bottom = top + (region.height ?? screen.height - FRAME.tray - top);
  const roomX = Math.max(0, right - left - width - 2 * FRAME.side),
    roomY = Math.max(0, bottom - top - height - FRAME.top - FRAME.bottom);
  const draw = (): Box => ({ x: left + r.int(roomX + 1), y: top + r.int(roomY + 1), width, height });
  let box = draw();
  const { zone } = r.dress;
  for (let k = 0; k < PLACE_DRAWS && zone !== 'any' && zoneOf(box.x, box.y) !== zone; k++) box = draw();
  r.corners.push({ x: box.x, y: box.y, free: roomX >= FREE });
  return box;
}

export const geometry = (b: Box): string => `${b.width}x${b.height}+${b.x}+${b.y}`;

const css = (pt: number, more = ''): string => `* { font: bold ${pt}pt "DejaVu Sans"; }\n${more}`;
export const LARGE: Look = { css: css(14), gtk2: 'gtk-font-name="DejaVu Sans Bold 13"\n' };
/** The look of windows that would not fit in 640x400 otherwise. */
export const COMPACT: Look = {
  css: css(12, 'button { padding: 2px 6px; min-height: 0; }'),
  gtk2: LARGE.gtk2,
  fixedGround: true,
};

export interface SetupPlan {
  readonly look?: Look;
  /** Absolute path -> content; written before anything starts. */
  readonly files?: Readonly<Record<string, string>>;
  readonly folders?: readonly string[];
  /** Shell commands that run to their end before applications start. */
  readonly before?: readonly string[];
  /** Shell commands started in the background, in order; each waits for the windows of the one before. */
  readonly start: readonly {
    readonly command: string;
    /** Windows it opens; default 1. */
    readonly windows?: number;
    /** Shell commands once they are there, e.g. wmctrl. */
    readonly then?: readonly string[];
  }[];
}

/** Output files of dialogs and the like. */
export const OUT = '/tmp/desk';

/**
 * One `execute` step that writes the files, starts the applications and returns when their windows are there. It waits
 * for the window manager's list of windows (an event, no polling). A window that fails to open is a set-up error at
 * once: a second try would find what the first has left.
 */
export function setup({ dress }: Scene, p: SetupPlan): SetupStep[] {
  const look = p.look ?? LARGE,
    letters = look.fixedLetters ? undefined : dress.letters,
    ground = look.fixedGround ? undefined : dress.ground,
    sheets = [look.css, letters, dress.colours, ground].filter((sheet) => sheet !== undefined);
  const files: Record<string, string> = {
    '/home/user/.config/gtk-3.0/gtk.css': sheets.length === 1 ? look.css : `${sheets.join('\n')}\n`,
    ...(dress.theme === undefined ? {} : { '/home/user/.config/gtk-3.0/settings.ini': `[Settings]\n${dress.theme}\n` }),
    '/home/user/.gtkrc-2.0': look.gtk2,
    ...(look.settings ? { '/home/user/.config/glib-2.0/settings/keyfile': look.settings } : {}),
    ...p.files,
  };
  const folders = new Set([
    OUT,
    ...Object.keys(files).map((f) => f.slice(0, f.lastIndexOf('/'))),
    ...(p.folders ?? []),
  ]);
  const lines = [
    `[ -e ${OUT} ] && exit 1`,
    `mkdir -p ${[...folders].map(q).join(' ')}`,
    ...Object.entries(files).map(([path, text]) => `printf %s ${q(text)} > ${q(path)}`),
    // Every date the same, so that a listing shows nothing of today.
    ...(p.files ? [`touch -d @1700000000 ${Object.keys(p.files).map(q).join(' ')}`] : []),
    ...(p.before ?? []),
    'exec 3< <(exec xprop -root -spy _NET_CLIENT_LIST); spy=$!; want=0',
    'await() { want=$((want + $1)); while read -r -t 20 -u 3 line; do ids=${line//[^#x]/}; [ $((${#ids} - 1)) -ge $want ] && return; done; exit 1; }',
    ...p.start.flatMap((s) => [`(${s.command}) > /dev/null 2>&1 3<&- &`, `await ${s.windows ?? 1}`, ...(s.then ?? [])]),
    'kill $spy; exit 0',
  ];
  const command = ['bash', '-c', lines.join('\n')];
  return [{ type: 'execute', parameters: { command, until: { returncode: 0 }, attempts: 1 } }];
}

/** A shell command inside the desktop prints exactly this. */
export interface Check {
  readonly command: string;
  readonly prints: string;
  /**
   * Looks again for this many ms before it counts as failed, for what settling cannot see: keys in the kernel's
   * terminal layer, a program's start on a busy machine.
   */
  readonly withinMs?: number;
}
const LOOK_AGAIN_MS = 50;
const commandOf = (c: Check): string =>
  c.withinMs === undefined
    ? c.command
    : `look() { ${c.command}\n}; for i in {1..${Math.ceil(c.withinMs / LOOK_AGAIN_MS)}}; do seen=$(look; echo .); [ "$seen" = ${q(`${c.prints}.`)} ] && break; sleep ${LOOK_AGAIN_MS / 1000}; done; printf %s "\${seen%.}"`;

/** All checks must hold. A missing file prints nothing, which matches nothing. */
export function judgedBy(...checks: readonly Check[]): Evaluator {
  const one = checks.map((c) => ({
    result: { type: 'vm_command_line', command: ['bash', '-c', commandOf(c)], title: c.command },
    expected: { type: 'rule', rules: { expected: c.prints } },
  }));
  return one.length === 1
    ? { func: 'exact_match', ...one[0]! }
    : {
        func: one.map(() => 'exact_match'),
        conj: 'and',
        result: one.map((o) => o.result),
        expected: one.map((o) => o.expected),
      };
}
export const fileIs = (path: string, content: string): Check => ({
  command: `cat ${q(path)} 2>/dev/null`,
  prints: content,
});
export const INFEASIBLE: Evaluator = { func: 'infeasible' };
