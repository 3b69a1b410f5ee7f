import { createTaskEngine } from '../../../runtime/tasks/index.js';
import { readFolder } from '../../../runtime/tasks/check.js';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';
import type { MetricRunner } from '../../../runtime/tasks/metrics/job.js';
import { StudioError } from '../../../runtime/domain/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { engineNeeds } from '../../../runtime/tasks/needs.js';
import { allImages, never } from './world.js';
import { madeDesktop, type Candidate, type MadeFiles } from './states.js';

export interface JudgedTask {
  readonly id: string;
  readonly apps: readonly string[];
  /** It visits the live web, or its evaluator does: listed apart. */
  readonly live: boolean;
  readonly account: boolean;
  readonly judged: boolean;
  /** Why it was not judged. */
  readonly why?: string;
  /** Rewards by candidate; absent where it was not judged. */
  readonly rewards?: Readonly<Partial<Record<Candidate, number>>>;
  readonly ms: number;
}

/** What each task of a folder is judged to be, on made desktops with made files. */
export async function judgeFolder(
  dir: string,
  o: { evaluators: Evaluators; metrics: MetricRunner; made: MadeFiles; onTask: (t: JudgedTask) => void },
): Promise<JudgedTask[]> {
  const read = await readFolder(dir, { image: (await allImages())['osworld']! }),
    tasks = read.flatMap((t) => (t.task ? [t.task] : [])),
    out: JudgedTask[] = [];
  for (const t of tasks) {
    const j = await judgeOne(t, o);
    out.push(j);
    o.onTask(j);
  }
  return out;
}

async function judgeOne(
  task: Task,
  o: { evaluators: Evaluators; metrics: MetricRunner; made: MadeFiles },
): Promise<JudgedTask> {
  const began = performance.now(),
    account = engineNeeds(task, o.evaluators).some((n) => /googledrive|setup:login/.test(n)),
    base = { id: task.id as string, apps: task.relatedApps, live: liveWeb(task), account };
  if (account) return { ...base, judged: false, why: 'it needs a Google account', ms: 0 };
  // Steps before judging are the desktop's; here only what the evaluator does is looked at.
  const engine = createTaskEngine({ metrics: o.metrics, evaluators: o.evaluators, assets: o.made.assets }),
    plain = { ...task, config: [], evaluator: { ...task.evaluator, postconfig: [] } };
  const rewards: Partial<Record<Candidate, number>> = {};
  try {
    for (const c of ['gold', 'missing', 'broken'] as const) {
      const d = madeDesktop(task, o.made, c);
      for (const s of [...task.config, ...(task.evaluator.postconfig ?? [])]) {
        const { stdout, stderr } = s.parameters as { stdout?: string; stderr?: string };
        for (const name of [stdout, stderr]) if (name) d.files.set(`/saved/${name}`, Buffer.from(''));
      }
      const saved = [...d.files.keys()].filter((p) => p.startsWith('/saved/')).map((p) => p.slice('/saved/'.length));
      if (saved.length > 0)
        await engine.setup(
          {
            ...plain,
            config: saved.map((name) => ({ type: 'execute', parameters: { command: ['true'], stdout: name } })),
          },
          d,
          never,
        );
      rewards[c] = (await engine.verify(plain, d, { type: 'finished' }, never)).reward;
    }
    return { ...base, judged: true, rewards, ms: performance.now() - began };
  } catch (e) {
    if (!(e instanceof StudioError)) throw e;
    return { ...base, judged: false, why: e.message, rewards, ms: performance.now() - began };
  }
}

const LIVE_GETTERS = /"type":"(info_from_website|pdf_from_url|gotoRecreationPage_and_get_html_content|page_info)"/;
const liveWeb = (t: Task): boolean => t.proxy === true || LIVE_GETTERS.test(JSON.stringify(t.evaluator));

/** Gold, missing and broken candidates got what they should: 1, 0 and 0. */
export const right = (t: JudgedTask): boolean =>
  t.judged && t.rewards?.gold === 1 && t.rewards.missing === 0 && t.rewards.broken === 0;
