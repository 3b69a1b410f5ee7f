import {
  byPerson,
  type RolloutId,
  type SampledSequence,
  SequenceReader,
  ServiceError,
  type Step,
} from '../domain/index.js';
import { Turns } from '../concurrency/turns.js';
import type { EventOf, GroupMember, TrainedSteps } from '../data/events.js';
import type { Row } from '../data/store/runIndex.js';
import { runPaths, type RunReader } from '../data/store/runStore.js';
import type { GroupView, StepView, TrajectoryView } from '../protocol/types.js';
import { older } from '../data/store/totals.js';
import { rowColumns, rowOf, rowsOf } from './rows.js';
import { stepView, type Interpreter } from './steps.js';

type Formed = EventOf<'group.formed'>;

/**
 * A trajectory whole, finished or running: steps with tokens, what curation and training made of them, verdict,
 * siblings.
 */
export async function trajectoryView(
  run: RunReader,
  rollout: string,
  o: { readonly alive: boolean; readonly interpreter: Interpreter },
): Promise<TrajectoryView> {
  // First, so that events behind it repeat what is here at worst.
  const seq = await nextSeq(run);
  const [r] = await run.index.query(
    `SELECT ${rowColumns}, r.head_position, r.trained_position FROM rollouts r WHERE r.id = ?`,
    [rollout],
  );
  if (!r)
    throw new ServiceError(
      'not.found',
      `There is no trajectory ${rollout} in this run${(await older(run)).older ? ', or it is one of the older ones that the run only counts' : ''}.`,
      'List the trajectories again.',
    );
  const row = rowOf(r, o.alive),
    live = row.outcome === 'running',
    records = await recordsOf(run, r, { rollout, group: row.group, live }),
    { done, formed } = records,
    advantage = records.trained?.advantage ?? (formed && advantagesOf(formed.members, o.interpreter).get(rollout)),
    steps = await stepViews(
      records,
      { rollout, instruction: row.instruction, desktop: r['desktop'], advantage },
      o.interpreter,
    ),
    outcome = done?.outcome;
  return {
    row: { ...row, steps: Math.max(row.steps, steps.length) },
    steps,
    threshold: formed?.threshold ?? records.threshold,
    report: outcome?.kind === 'error' ? undefined : outcome?.report,
    error: outcome?.kind === 'error' ? outcome.error : undefined,
    advantage,
    resetMs: done?.resetMs,
    verifyMs: done?.verifyMs,
    framesDir: runPaths(run.dir).frames,
    group: row.group === undefined ? undefined : await groupView(run, row.group, o),
    live,
    seq,
  };
}

/** The journal's records of one trajectory. */
interface Records {
  readonly steps: Awaited<ReturnType<RunReader['readSteps']>>;
  /** Set when it has ended. */
  readonly done: EventOf<'trajectory.recorded'>['head'] | undefined;
  /** Set when an update used it. */
  readonly trained: TrainedSteps | undefined;
  readonly formed: Formed | undefined;
  /** Entropy threshold that curation uses at present; only for a running trajectory. */
  readonly threshold: number | undefined;
}

async function recordsOf(
  run: RunReader,
  r: Row,
  t: { readonly rollout: string; readonly group: string | undefined; readonly live: boolean },
): Promise<Records> {
  const at = async (p: unknown): ReturnType<RunReader['at']> => (typeof p === 'number' ? run.at(p) : undefined);
  const [steps, head, trained, formed, threshold] = await Promise.all([
    run.readSteps(t.rollout as RolloutId),
    at(r['head_position']),
    at(r['trained_position']),
    t.group === undefined ? undefined : formedRecord(run, t.group),
    t.live ? newestThreshold(run) : undefined,
  ]);
  const done = head?.type === 'trajectory.recorded' ? head.head : undefined;
  return { steps, done, trained: trainedOf(trained, t.rollout), formed, threshold };
}

/** Tokens of answers that a view shows, and tokens of prompts that are told again for it: far more than anybody samples. */
const MOST_TOKENS_SHOWN = 1 << 20,
  MOST_PROMPT_TOKENS = 1 << 26;

async function stepViews(
  { steps, done, trained, formed }: Records,
  t: {
    readonly rollout: string;
    readonly instruction: string;
    readonly desktop: unknown;
    readonly advantage: number | undefined;
  },
  interpreter: Interpreter,
): Promise<StepView[]> {
  const member = formed?.members.find((m) => m.rollout === t.rollout),
    { advantages } = trained ?? {},
    advantageAt = advantages && new Map(Array.from(trained!.steps, (s, i) => [s, advantages[i]])),
    weightAt = new Map(Array.from(trained?.steps ?? [], (s, i) => [s, trained!.weights[i]])),
    tokenWeightsAt = new Map(Array.from(trained?.steps ?? [], (s, i) => [s, trained!.tokenWeights?.[i]])),
    sequences = new OwnSequences(),
    turns = new Turns(),
    views: StepView[] = [];
  let room = MOST_TOKENS_SHOWN;
  /** 0 where training used the trajectory without this step; undefined where curation left the step out. */
  const advantageOf = (index: number): number | undefined => {
    if (member && !member.keep[index]) return undefined;
    return advantageAt ? (advantageAt.get(index) ?? 0) : t.advantage;
  };
  for (const [i, { step, at, extra }] of steps.entries()) {
    if (turns.over) await turns.next();
    const view = stepView(
      {
        step: room > 0 ? step : { ...step, tokens: undefined },
        at,
        extra,
        instruction: t.instruction,
        after: steps[i + 1]?.step.frame ?? done?.last,
        kept:
          member &&
          (member.injected || (step.origin === 'policy' && !byPerson(step) && step.index >= (member.from ?? 0)))
            ? member.keep[step.index]
            : undefined,
        weight: weightAt.get(step.index),
        tokenWeights: tokenWeightsAt.get(step.index),
        sequence: sequences.of(step),
        desktop: typeof t.desktop === 'string' ? t.desktop : undefined,
        advantage: advantageOf(step.index),
      },
      interpreter,
    );
    room -= view.tokens?.length ?? 0;
    views.push(view);
  }
  return views;
}

/** Of each step its own answer with its prompt; behind a record that cannot be read, no other one can. */
class OwnSequences {
  readonly #reader = new SequenceReader();
  #room = MOST_PROMPT_TOKENS;

  of(step: Step): SampledSequence | 'damaged' | undefined {
    if (this.#room <= 0) return 'damaged';
    try {
      const read = this.#reader.read(step);
      for (const s of read) this.#room -= s.symbols.length;
      return read.find((s) => !s.rejected);
    } catch (e) {
      if (!(e instanceof RangeError)) throw e;
      this.#room = 0;
      return 'damaged';
    }
  }
}

/** A group with all who were ever in it: members, those that were replaced or trimmed, and the injected one. */
export async function groupView(
  run: RunReader,
  group: string,
  o: { readonly alive: boolean; readonly interpreter: Interpreter },
): Promise<GroupView> {
  const [[g], own, formed] = await Promise.all([
    run.index.query('SELECT family, task, state, reason, threshold FROM groups WHERE id = ?', [group]),
    run.index.query(
      'SELECT id, reason, state FROM rollouts WHERE grp = ? AND (started_at IS NOT NULL OR outcome IS NOT NULL) ORDER BY born',
      [group],
    ),
    formedRecord(run, group),
  ]);
  if (!g)
    throw new ServiceError('not.found', `There is no group ${group} in this run.`, 'List the trajectories again.');
  const injected = formed?.members.filter((m) => m.injected).map((m) => m.rollout as string) ?? [],
    ids = [...own.map((r) => String(r['id'])), ...injected];
  const rows = await rowsOf(run, ids, o.alive),
    advantages = formed ? advantagesOf(formed.members, o.interpreter) : new Map<string, number>(),
    retired = new Map(
      own.flatMap((r) => (r['state'] === 'retired' && r['reason'] ? [[String(r['id']), String(r['reason'])]] : [])),
    );
  return {
    id: group,
    family: String(g['family']),
    task: String(g['task']),
    state: g['state'] === 'dropped' && g['reason'] ? `dropped: ${String(g['reason'])}` : String(g['state']),
    threshold: formed?.threshold,
    members: ids.flatMap((id, i) => {
      const row = rows.get(id),
        advantage = advantages.get(id),
        why = retired.get(id);
      return row
        ? [
            {
              rollout: id,
              outcome: row.outcome,
              reward: row.reward,
              advantage,
              steps: row.steps,
              injected: i >= own.length,
              retired: why,
            },
          ]
        : [];
    }),
  };
}

/** Advantages as the trainer computes them from the same members (run/credit.ts). */
export function advantagesOf(
  members: readonly GroupMember[],
  interpreter: Pick<Interpreter, 'advantages'>,
): Map<string, number> {
  // Steps of one rollout have different ones there: training says which.
  if (members.length === 0 || members.some((m) => m.from !== undefined)) return new Map();
  const a = interpreter.advantages(
    members.map((m) => m.reward),
    members.map((m) => m.keep.length),
  );
  return new Map(a?.map((advantage, i) => [members[i]!.rollout as string, advantage]));
}

async function formedRecord(run: RunReader, group: string): Promise<Formed | undefined> {
  const [row] = await run.index.query('SELECT position FROM groups WHERE id = ?', [group]);
  // A group that is open, or was dropped, has another record here.
  const e = row && (await run.at(Number(row['position'])));
  return e?.type === 'group.formed' ? e : undefined;
}
function trainedOf(e: Awaited<ReturnType<RunReader['at']>>, rollout: string): TrainedSteps | undefined {
  return e?.type === 'batch.trained' ? e.trajectories?.find((t) => t.rollout === rollout && !t.injected) : undefined;
}
async function newestThreshold(run: RunReader): Promise<number | undefined> {
  const [row] = await run.index.query(
    'SELECT threshold FROM groups WHERE threshold IS NOT NULL ORDER BY closed_at DESC LIMIT 1',
    [],
  );
  return row && typeof row['threshold'] === 'number' ? row['threshold'] : undefined;
}

/** The sequence number behind the last record the index has taken in. */
export async function nextSeq(run: RunReader): Promise<number> {
  const [row] = await run.index.query("SELECT value FROM meta WHERE key = 'seq'", []);
  return row ? Number(row['value']) + 1 : 0;
}
