import { resolve } from 'node:path';
import { parseRunFile } from '../../../runtime/config/index.js';
import { chooseProvider, specOf } from '../../../runtime/cluster/provide.js';
import type { Desktop, DesktopProvider } from '../../../runtime/cluster/types.js';
import { messageOf, StudioError } from '../../../runtime/domain/index.js';
import { pngOf } from '../../../runtime/data/store/png.js';
import { createTaskEngine, metricWorkers } from '../../../runtime/tasks/index.js';
import { readFolder } from '../../../runtime/tasks/check.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { windows } from '../../../runtime/tasks/setup/windows.js';
import type { TaskContext } from '../../../runtime/tasks/context.js';
import { mkdir, writeFile } from 'node:fs/promises';
import { allImages, never } from './world.js';
import type { MadeFiles } from './states.js';

/** One task on a real desktop: set up with made files, judged as it then is. Times in ms. */
export interface DesktopTask {
  readonly id: string;
  readonly apps: readonly string[];
  readonly resetMs: number;
  readonly setupMs: number;
  readonly judgeMs: number;
  /** Titles of the windows that set-up left. */
  readonly windows: readonly string[];
  readonly setUp: boolean;
  /** Reward of a policy that does nothing; absent where it was not judged. */
  readonly reward?: number;
  readonly error?: string;
}

/** Sets up and judges each task of a folder that needs neither the live web nor what the image lacks. */
export async function runOnDesktops(
  dir: string,
  o: {
    readonly evaluators: Evaluators;
    readonly made: MadeFiles;
    readonly ids?: readonly string[];
    readonly most?: number;
    /** Folder for a screen of each task after its set-up. */
    readonly screens?: string;
    readonly onTask: (t: DesktopTask) => void;
  },
): Promise<DesktopTask[]> {
  const image = (await allImages())['osworld']!,
    read = await readFolder(dir, { image, assets: o.made.assets, evaluators: o.evaluators }),
    able = read.flatMap((t) => (t.task && t.row.runs === 'here' ? [t.task] : [])),
    chosen = o.ids ? able.filter((t) => o.ids!.includes(t.id)) : able.slice(0, o.most);
  const config = parseRunFile(
      {},
      { desktops: { image: 'osworld', provider: 'local', screen: { width: 1920, height: 1080 } } },
    ).desktops,
    provider = await chooseProvider(config),
    out: DesktopTask[] = [];
  let desktop = await provider.create(specOf(config));
  try {
    for (const task of chosen) {
      const began = performance.now();
      desktop = await fresh(provider, desktop, specOf(config));
      const t = await one(task, desktop, performance.now() - began, o);
      out.push(t);
      o.onTask(t);
    }
  } finally {
    await provider.dispose();
  }
  return out;
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
  desktop: Desktop,
  resetMs: number,
  o: { evaluators: Evaluators; made: MadeFiles; screens?: string },
): Promise<DesktopTask> {
  const engine = createTaskEngine({
      metrics: metricWorkers({ file: resolve('dist/runtime.js') }),
      evaluators: o.evaluators,
      assets: o.made.assets,
      settings: { sleepMode: 'settle' },
    }),
    base = { id: task.id as string, apps: task.relatedApps, resetMs };
  const began = performance.now();
  let setUp = false,
    titles: string[] = [],
    setupMs = 0;
  try {
    await engine.setup(task, desktop, never);
    setUp = true;
    setupMs = performance.now() - began;
    titles = (await windows({ desktop, signal: never } as unknown as TaskContext)).map((w) => w.title);
    if (o.screens) {
      await mkdir(o.screens, { recursive: true });
      const frame = await desktop.observe();
      await writeFile(resolve(o.screens, `${task.id}.png`), await pngOf(frame));
    }
    const from = performance.now(),
      outcome = await engine.verify(task, desktop, { type: 'finished' }, never);
    return { ...base, setUp, windows: titles, setupMs, judgeMs: performance.now() - from, reward: outcome.reward };
  } catch (e) {
    const error = e instanceof StudioError ? `${e.kind}: ${e.message}` : messageOf(e);
    return { ...base, setUp, windows: titles, setupMs: performance.now() - began, judgeMs: 0, error };
  }
}
