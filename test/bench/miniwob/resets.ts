import { ensureRootfs } from '../../../runtime/cluster/imageBuild.js';
import { createPool } from '../../../runtime/cluster/pool.js';
import { chooseProvider, settleOf, specOf } from '../../../runtime/cluster/provide.js';
import type { DesktopPool, Lease, SettleOptions } from '../../../runtime/cluster/types.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { id, isEncoded, type FamilyId } from '../../../runtime/domain/index.js';
import { rest } from '../../../runtime/rollout/rest.js';
import { MiniwobEngine, MiniwobSource, openPages, type Pages } from '../../../runtime/tasks/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { spread, type Reset, type Resets } from './resetsReport.js';

const SUITE = 'miniwob/';

export interface ResetsPlan {
  /** The user's copy of MiniWoB++. */
  readonly dir: string;
  readonly provider: 'docker' | 'local';
  /** Resets of each kind. */
  readonly resets: number;
  /** The page that is reset to itself. */
  readonly same: string;
  /** Pages that the others are drawn from, with or without `miniwob/`, as many as there are resets; by default all. */
  readonly pages: readonly string[] | undefined;
}

/**
 * One desktop goes from episode to episode as in a run: leased from a pool, which resets it when it is released, set up
 * by the suite's engine, at rest, and looked at. Each episode clicks once. Rejects with what its parts reject with.
 */
export async function measureResets(plan: ResetsPlan, signal: AbortSignal): Promise<Resets> {
  const pages = await openPages(plan.dir),
    { first, same, other } = tasksOf(plan, pages),
    { desktops } = parseRunFile({
      tasks: { suite: 'miniwob', dir: plan.dir },
      desktops: { provider: plan.provider, count: 1 },
    });
  if (plan.provider === 'local') await ensureRootfs({ image: 'web' });
  const provider = await chooseProvider(desktops),
    pool = createPool({ provider, spec: specOf(desktops), size: 1, hardResetEvery: desktops.hardResetEvery }),
    run = new Episodes(pool, new MiniwobEngine(pages), settleOf(desktops), signal);
  try {
    // It brings the pages into the desktop, and is measured nowhere.
    await run.next(first);
    return { same: await run.all(same), other: await run.all(other) };
  } finally {
    await pool.close();
    await provider.dispose();
  }
}

/** Throws where a page is named that is not there, or too few are. */
function tasksOf(plan: ResetsPlan, pages: Pages): { readonly first: Task; same: Task[]; other: Task[] } {
  const source = new MiniwobSource(pages),
    named = plan.pages?.map((name) => name.replace(SUITE, '')) ?? pages.names,
    among = spread(
      named.filter((name) => name !== plan.same),
      plan.resets,
    );
  if (among.length < 2) throw new Error(`--pages: at least two other pages than ${plan.same} are needed`);
  const taskOf = (page: string, seed: number): Task => source.task(id<FamilyId>(`${SUITE}${page}`), seed),
    times = (page: (i: number) => string): Task[] =>
      Array.from({ length: plan.resets }, (_, i) => taskOf(page(i), 2 + i));
  return {
    first: taskOf(plan.same, 1),
    same: times(() => plan.same),
    other: times((i) => among[i % among.length]!),
  };
}

class Episodes {
  readonly #pool: DesktopPool;
  readonly #engine: MiniwobEngine;
  readonly #settle: SettleOptions;
  readonly #signal: AbortSignal;
  #lease: Lease | undefined;

  constructor(pool: DesktopPool, engine: MiniwobEngine, settle: SettleOptions, signal: AbortSignal) {
    this.#pool = pool;
    this.#engine = engine;
    this.#settle = settle;
    this.#signal = signal;
  }

  /** One after the other. */
  async all(tasks: readonly Task[]): Promise<Reset[]> {
    const resets: Reset[] = [];
    for (const task of tasks) resets.push(await this.next(task));
    return resets;
  }

  /** From the end of the episode before to the first screen of this one, and one click. */
  async next(task: Task): Promise<Reset> {
    const ended = performance.now();
    this.#lease?.release();
    this.#lease = await this.#pool.lease({ signal: this.#signal });
    const { desktop } = this.#lease,
      leased = performance.now();
    await this.#engine.setup(task, desktop, this.#signal);
    const begun = performance.now();
    await rest(desktop, { settle: this.#settle });
    const rested = performance.now(),
      frame = await desktop.observe(),
      seen = performance.now();
    if (!isEncoded(frame)) desktop.recycle?.(frame);
    await desktop.perform({
      type: 'click',
      at: { x: Math.round(desktop.screen.width / 4), y: Math.round(desktop.screen.height / 2) },
    });
    await rest(desktop, { settle: this.#settle });
    return {
      page: task.family.replace(SUITE, ''),
      tidied: leased - ended,
      begun: begun - leased,
      rested: rested - begun,
      seen: seen - rested,
      whole: seen - ended,
    };
  }
}
