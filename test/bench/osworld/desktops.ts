import { resolve } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { parseRunFile } from '../../../runtime/config/index.js';
import { chooseProvider, specOf } from '../../../runtime/cluster/provide.js';
import type { Desktop, DesktopProvider } from '../../../runtime/cluster/types.js';
import { messageOf, StudioError } from '../../../runtime/domain/index.js';
import { digestOf } from '../../../runtime/files/digest.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { createTaskEngine, metricWorkers } from '../../../runtime/tasks/index.js';
import { readFolder } from '../../../runtime/tasks/check.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { windows, type Window } from '../../../runtime/tasks/setup/windows.js';
import type { TaskContext } from '../../../runtime/tasks/context.js';
import { mkdir, writeFile } from 'node:fs/promises';
import { allImages, never } from './world.js';
import { RecordingDesktop, type Contents, type RecordedState, type RecordedTask } from './recorded.js';
import { expectedInFront } from './expected.js';
import { solutionOf, type Solution } from './solutions.js';
import type { MadeFiles } from './states.js';

/** One task on a real desktop: set up with made files, judged as it then is. Times in ms. */
export interface DesktopTask {
  readonly id: string;
  readonly apps: readonly string[];
  readonly resetMs: number;
  readonly setupMs: number;
  readonly judgeMs: number;
  /** Titles of the windows that set-up left, the one in front first. */
  readonly windows: readonly string[];
  /** Every step of its config ran, and the window that it should leave in front is there (expected.ts). */
  readonly setUp: boolean;
  /** What should be in front and is not. */
  readonly lacks?: string;
  /** Whether the screen after the reset before this task is, pixel by pixel, the first desktop's at its start. */
  readonly resetAlike?: boolean;
  /** Whether setting it up twice left the same screen, where it was set up twice. */
  readonly setUpAlike?: boolean;
  /** Reward of a policy that does nothing; absent where it was not judged. */
  readonly reward?: number;
  /** Who judged it: us, or OSWorld's evaluators. */
  readonly judges?: readonly string[];
  readonly error?: string;
  /** Its folder among the task files: OSWorld's domain. */
  readonly folder: string;
  /** What became of its scripted solution (solutions.ts), where it has one. */
  readonly solved?: { readonly reward: number } | { readonly error: string };
}
interface Options {
  readonly evaluators: Evaluators;
  readonly made: MadeFiles;
  readonly ids?: readonly string[];
  readonly most?: number;
  /** Only those with a scripted solution. */
  readonly solvable: boolean;
  readonly provider: 'local' | 'docker';
  /** Folder for a screen of each task before it is judged. */
  readonly screens?: string | undefined;
  /** Files that were read of desktops. */
  readonly files: Contents;
  readonly onTask: (t: DesktopTask, recorded: RecordedTask) => void;
}

/** A task that needs neither the live web, an account nor VS Code, and cannot be set up here all the same. */
export interface LeftOut {
  readonly id: string;
  readonly needs: readonly string[];
}
const ELSEWHERE = /^(network(:judge)?|app:vscode|setup:(googledrive|login)|getter:googledrive_file)$/;

/** Sets up and judges each task of a folder that needs neither the live web nor what the image lacks. */
export async function runOnDesktops(
  dir: string,
  o: Options,
): Promise<{ readonly tasks: DesktopTask[]; readonly leftOut: LeftOut[] }> {
  const image = (await allImages())['osworld']!,
    read = await readFolder(dir, { image, assets: o.made.assets, evaluators: o.evaluators }),
    able = read.flatMap((t) => (t.task && t.row.runs === 'here' ? [t.task] : [])),
    leftOut = read
      .filter(({ row }) => row.runs !== 'here' && !row.needs.some((n) => ELSEWHERE.test(n)))
      .map(({ row: { id, needs } }) => ({ id, needs })),
    chosen = o.ids ? able.filter((t) => o.ids!.some((i) => t.id.startsWith(i))) : able.slice(0, o.most);
  const config = parseRunFile(
      {},
      { desktops: { image: 'osworld', provider: o.provider, screen: { width: 1920, height: 1080 } } },
    ).desktops,
    provider = await chooseProvider(config),
    out: DesktopTask[] = [];
  let desktop = await provider.create(specOf(config));
  const first = await screenOf(desktop);
  try {
    for (const task of chosen) {
      const solution = solutionOf(task.id),
        folder = task.domain ?? '';
      if (o.solvable && !solution) continue;
      const episode = async (actions: Solution): Promise<Episode> => {
        const began = performance.now();
        desktop = await fresh(provider, desktop, specOf(config));
        const resetMs = performance.now() - began,
          resetAlike = (await screenOf(desktop)) === first;
        return one(task, desktop, { resetMs, resetAlike }, actions, o);
      };
      const nothing = await episode([]),
        solved = solution && (await episode(solution));
      const t = {
        ...nothing.row,
        folder,
        ...(solved ? { solved: resultOf(solved), setUpAlike: nothing.screen === solved.screen } : {}),
      };
      out.push(t);
      o.onTask(t, {
        id: task.id,
        folder,
        ...recordedOf('nothing', nothing),
        ...(solved ? recordedOf('solved', solved) : {}),
      });
    }
  } finally {
    await provider.dispose();
  }
  return { tasks: out, leftOut };
}

/** One episode as it went, and what its desktop answered. */
interface Episode {
  readonly row: Omit<DesktopTask, 'folder' | 'solved'>;
  readonly state: RecordedState;
  /** Digest of the screen that set-up left. */
  readonly screen: string;
}
const resultOf = ({ row }: Episode): NonNullable<DesktopTask['solved']> =>
  row.reward === undefined ? { error: row.error ?? '' } : { reward: row.reward };
const recordedOf = (name: 'nothing' | 'solved', { row, state }: Episode): Partial<RecordedTask> =>
  row.reward === undefined ? {} : { [name]: { reward: row.reward, state } };

/** Digest of the screen when the desktop has come to rest, as before a policy's first look. */
async function screenOf(d: Desktop): Promise<string> {
  await d.settle();
  const { data } = await d.observe();
  return digestOf(data);
}

async function fresh(p: DesktopProvider, d: Desktop, spec: ReturnType<typeof specOf>): Promise<Desktop> {
  try {
    return await p.reset(d);
  } catch {
    await p.destroy(d);
    return p.create(spec);
  }
}

async function one(
  task: Task,
  real: Desktop,
  reset: Pick<DesktopTask, 'resetMs' | 'resetAlike'>,
  actions: Solution,
  o: Pick<Options, 'evaluators' | 'made' | 'screens' | 'files'>,
): Promise<Episode> {
  const desktop = new RecordingDesktop(real, o.files),
    engine = createTaskEngine({
      metrics: metricWorkers({ file: resolve('dist/runtime.js') }),
      evaluators: o.evaluators,
      assets: o.made.assetsOf(task),
      settings: { sleepMode: 'settle' },
    }),
    base = { id: task.id as string, apps: task.relatedApps, ...reset };
  const began = performance.now();
  let setUp = false,
    lacks: string | undefined,
    screen = '',
    titles: readonly string[] = [],
    setupMs = 0;
  try {
    await engine.setup(task, desktop, never);
    setUp = true;
    setupMs = performance.now() - began;
    screen = await screenOf(real);
    titles = await titlesOf(real);
    const expected = expectedInFront(task);
    if (expected && !expected.shownBy(titles[0] ?? '')) lacks = expected.what;
    await perform(real, actions);
    if (o.screens) await photograph(real, o.screens, `${task.id}${actions.length > 0 ? '.solved' : ''}`);
    const from = performance.now(),
      outcome = await engine.verify(task, desktop, { type: 'finished' }, never);
    const seen = { windows: titles, ...(lacks === undefined ? {} : { lacks }) },
      row = {
        ...base,
        setUp: lacks === undefined,
        ...seen,
        setupMs,
        judgeMs: performance.now() - from,
        reward: outcome.reward,
        judges: [...new Set(outcome.report?.checks.flatMap((c) => (c.judge ? [c.judge.name] : [])))],
      };
    return { row, state: desktop.state, screen };
  } catch (e) {
    const error = e instanceof StudioError ? `${e.kind}: ${e.message}` : messageOf(e),
      row = {
        ...base,
        setUp: setUp && lacks === undefined,
        windows: titles,
        setupMs: setUp ? setupMs : performance.now() - began,
        judgeMs: 0,
        error,
      };
    return { row, state: desktop.state, screen };
  }
}

const windowsOf = (d: Desktop): Promise<Window[]> => windows({ desktop: d, signal: never } as unknown as TaskContext);

/** Its windows' titles, the one in front first. */
async function titlesOf(d: Desktop): Promise<string[]> {
  const active = Number((await d.exec(['python3', '-c', ACTIVE_WINDOW])).stdout.toString('utf8')),
    all = await windowsOf(d);
  return [...all.filter((w) => Number(w.id) === active), ...all.filter((w) => Number(w.id) !== active)].map((w, i) =>
    i === 0 && Number(w.id) !== active ? '' : w.title,
  );
}
const ACTIVE_WINDOW =
  "from Xlib import display as D; d = D.Display(); print(d.screen().root.get_full_property(d.intern_atom('_NET_ACTIVE_WINDOW'), 0).value[0])";

/** Performs a solution, and waits until the terminal that it opened has ended. */
async function perform(d: Desktop, actions: Solution): Promise<void> {
  const terminals = async (): Promise<number> =>
    (await windowsOf(d)).filter((w) => /gnome-terminal/i.test(w.className)).length;
  const before = await terminals();
  for (const a of actions) {
    await d.perform(a);
    await d.settle();
  }
  for (let left = MOST_LOOKS; left > 0 && (await terminals()) > before; left--) await after(200);
}
/** Of 200 ms. */
const MOST_LOOKS = 75;

async function photograph(desktop: Desktop, dir: string, name: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await writeFile(resolve(dir, `${name}.png`), await pngOf(await desktop.observe()));
}
