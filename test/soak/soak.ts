import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { Daemon } from '../chaos/daemon.js';
import { belongs } from '../chaos/orphans.js';
import { Others } from '../chaos/others.js';
import { processes } from '../chaos/processes.js';
import { runFile as shortRunFile } from '../chaos/runFile.js';
import { Tail } from '../chaos/tail.js';
import * as methods from '../../runtime/protocol/methods.js';
import type { ProbeLine } from './probe.js';
import { soakReport, STEADY_MINUTES, type Answer, type Folder, type SoakReport } from './report.js';
import { SoakWindow } from './window.js';
import { descriptorsOf, sampleFolder, sampleProcesses, type Sample } from './sample.js';

const SAMPLE_MS = 2000;
/**
 * How often the folder is looked through, and the pages' garbage collected. Every few seconds would be what slows the
 * machine down in the end: a run of an hour has tens of thousands of files.
 */
const LOOKS = 60;
const BEGIN_MS = 600_000;
const ENDS_MS = 60_000;

/** An ordinary run: several desktops, evaluations, two replicas. */
const RUN_FILE = {
  name: 'soak',
  seed: 5,
  tasks: { families: ['press-button', 'term-touch', 'list-confirm'] },
  desktops: { count: 3, provider: 'local' },
  policy: { replicas: 2 },
  rollout: { maxSteps: 6 },
  trainer: { batchGroups: 2 },
  warmStart: { demonstrations: 4, steps: 30 },
  evaluation: { episodes: 8, everyMinutes: 5, untrained: false },
  budget: { minutes: 6000 },
};
/** One that is too short to be judged learns for a second before it trains, so that it is watched soon. */
const runFileFor = (minutes: number): object =>
  minutes < STEADY_MINUTES ? { ...shortRunFile({ provider: 'local' }), name: 'soak' } : RUN_FILE;

export interface SoakOptions {
  readonly minutes: number;
  /** With VS Code, its extension host and two pages; else with a client alone that asks what they would. */
  readonly window: boolean;
  readonly say: (text: string) => void;
}

/** A run of a real daemon for so long, with a window that looks at it, and what its processes need meanwhile. */
export async function soak({ minutes, window: wanted, say }: SoakOptions): Promise<SoakReport> {
  const base = mkdtempSync(join(tmpdir(), 'dart-soak-')),
    problems: string[] = [],
    window = wanted ? await SoakWindow.open() : undefined;
  let tail: Tail | undefined;
  const daemon = new Daemon(base, problems, () => tail, 'dist/chaos/probe.mjs', window?.storage),
    { client } = daemon.window,
    samples: Sample[] = [],
    folder: Folder[] = [],
    held: Record<string, number>[] = [],
    answers: Answer[] = [],
    drawn: number[] = [];
  try {
    await daemon.start();
    const { run } = await client.request(methods.startRun, { text: JSON.stringify(runFileFor(minutes)), base });
    tail = new Tail(run);
    daemon.window.follow(run);
    say(`the run is in ${run}`);
    await daemon.until(() => tail!.versions > 0, BEGIN_MS, 'the run had trained');
    await window?.show(run);
    say('it trains, and is looked at');
    const others = new Others(base);
    others.begin();
    const began = Date.now(),
      lookMs = Math.max(SAMPLE_MS, (minutes * 60_000) / LOOKS);
    let looks = 0;
    for (const end = began + minutes * 60_000; Date.now() < end; await after(SAMPLE_MS)) {
      const at = Date.now(),
        thorough = at - began >= folder.length * lookMs;
      if (thorough) await window?.collectGarbage();
      samples.push(...sampleProcesses(daemon.pid, at), ...(window?.sample(at) ?? []));
      tail.poll();
      if (thorough) {
        folder.push({ at, value: 0, steps: tail.count('rollout.step'), ...sampleFolder(run) });
        held.push(descriptorsOf(daemon.pid));
      }
      answers.push(...(await look(client, run)));
      drawn.push(...((await window?.drawn()) ?? []));
      if (looks++ % 30 === 0)
        say(`${Math.round((at - began) / 60_000)} min, ${tail.count('rollout.step')} steps, version ${tail.versions}`);
    }
    const share = others.share(),
      lines = probed(base, daemon.pid, began);
    await client.request(methods.stopRun, { run, now: true });
    await client.shutdown();
    if (problems.length > 0) throw new Error(problems.join('\n'));
    return soakReport({
      minutes: (Date.now() - began) / 60_000,
      others: share,
      looks,
      held,
      samples,
      folder,
      late: lines.map((l) => l.late),
      delays: lines.map((l) => l.delays),
      ownLate: lines.flatMap((l) => (l.ownLate === undefined ? [] : [l.ownLate])),
      inside: lines,
      answers,
      drawn,
    });
  } finally {
    await window?.close();
    daemon.window.close();
    await daemon.kill();
    await remove(base);
  }
}

/** Processes of a daemon that was killed write until they have noticed. */
async function remove(base: string): Promise<void> {
  const left = (): boolean => processes().some((p) => p.pid !== process.pid && belongs(p.pid, base));
  for (const end = Date.now() + ENDS_MS; left() && Date.now() < end;) await after(100);
  try {
    rmSync(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
  } catch (e) {
    // What was measured, or went wrong before, counts more.
    process.stderr.write(`${base} could not be removed: ${String(e)}\n`);
  }
}

/** What an open dashboard asks. */
async function look(client: Daemon['window']['client'], run: string): Promise<Answer[]> {
  const questions = {
      getRun: () => client.request(methods.getRun, { run }),
      getCurves: () => client.request(methods.getCurves, { run }),
      listTrajectories: () => client.request(methods.listTrajectories, { run, limit: 50 }),
      listTasks: () => client.request(methods.listTasks, { run }),
    },
    out: Answer[] = [];
  for (const [question, ask] of Object.entries(questions)) {
    const asked = performance.now();
    await ask();
    out.push({ question, ms: performance.now() - asked });
  }
  return out;
}
function probed(base: string, pid: number, since: number): ProbeLine[] {
  const file = join(base, `${pid}.jsonl`);
  if (!existsSync(file)) throw new Error('The daemon did not say how late its event loop was.');
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((l) => JSON.parse(l) as ProbeLine)
    .filter((l) => l.at >= since);
}
