import type {
  AnnotationOp,
  AnnotationView,
  PoolView,
  Replay,
  ReviewQueue,
  StepView,
  TrajectoryView,
} from '../../../runtime/protocol/types.js';
import type { Answer } from './page.js';

interface Edit {
  readonly revision: number;
  readonly at: number;
  readonly ops: readonly AnnotationOp[];
}
interface Kept {
  readonly recorded: TrajectoryView;
  edits: readonly Edit[];
  head: number;
  last: number;
  replays: Replay[];
  locked?: AnnotationView['locked'];
}
type Params = Readonly<Record<string, unknown>>;

/**
 * A daemon's annotations by their contract (protocol/annotations.ts): revisions, `busy` for an edit of another one than
 * the shown, undo and redo.
 */
export class FakeAnnotations {
  readonly #all = new Map<string, Kept>();
  readonly pool: string[] = [];
  queue: ReviewQueue = { items: [], total: 0, reviewed: 0 };
  known: readonly string[] = [];
  /** Asked before each answer: wait in it, or throw a HostError. */
  before: (method: string, params: Params) => Promise<void> | void = () => undefined;
  replay: (rollout: string, revision: number) => Promise<Replay> | Replay = (_r, revision) => ({
    revision,
    at: 0,
    outcome: 'success',
    reward: 1,
  });

  add(v: TrajectoryView, o: { readonly locked?: AnnotationView['locked'] } = {}): this {
    this.#all.set(v.row.rollout, { recorded: v, edits: [], head: 0, last: 0, replays: [], ...o });
    return this;
  }
  /** Edits on disk and in force, newest revision last. */
  ops(rollout: string): AnnotationOp[] {
    const k = this.#of(rollout);
    return k.edits.filter((e) => e.revision <= k.head).flatMap((e) => [...e.ops]);
  }
  revision(rollout: string): number {
    return this.#of(rollout).head;
  }
  /** As another window does it. */
  edit(rollout: string, base: number, ops: readonly AnnotationOp[]): AnnotationView {
    const k = this.#of(rollout);
    if (base !== k.head)
      throw { kind: 'busy', message: `Revision ${k.head} is shown, not ${base}.`, remedy: 'Read it again.' };
    k.edits = [...k.edits.filter((e) => e.revision <= base), { revision: ++k.last, at: k.last, ops }];
    k.head = k.last;
    return this.view(rollout);
  }
  verdict(rollout: string, r: Replay): void {
    this.#of(rollout).replays.push(r);
  }
  view(rollout: string): AnnotationView {
    const k = this.#of(rollout),
      ops = this.ops(rollout),
      steps = new Map<number, StepView>(k.recorded.steps.map((s) => [s.index, s])),
      deleted = new Set<number>(),
      marks: Record<number, ('key' | 'redundant' | 'wrong')[]> = {};
    let outcome: AnnotationView['outcome'],
      tags: readonly string[] = [],
      note = '',
      reviewed = false,
      end = Infinity;
    for (const o of ops) {
      if (o.op === 'outcome') outcome = o.value === null ? undefined : { value: o.value, reason: o.reason };
      else if (o.op === 'tags') tags = o.tags;
      else if (o.op === 'note') note = o.text;
      else if (o.op === 'reviewed') reviewed = o.value;
      else if (o.op === 'mark')
        marks[o.step] = o.on
          ? [...new Set([...(marks[o.step] ?? []), o.mark])]
          : (marks[o.step] ?? []).filter((m) => m !== o.mark);
      else if (o.op === 'thought') {
        const { thought: _t, ...s } = steps.get(o.step)!,
          text = o.text ?? k.recorded.steps.find((x) => x.index === o.step)?.thought;
        steps.set(o.step, { ...s, ...(text === undefined ? {} : { thought: text }) });
      } else if (o.op === 'action') {
        const s = steps.get(o.step)!;
        steps.set(o.step, { ...s, actions: s.actions.map((a, i) => (i === o.action ? o.value : a)) });
      } else if (o.op === 'delete') for (const s of o.steps) deleted.add(s);
      else if (o.op === 'restore') for (const s of o.steps) deleted.delete(s);
      else end = Math.min(end, o.step);
    }
    const left = [...steps.values()].filter((s) => !deleted.has(s.index) && s.index < end);
    return {
      run: '/runs/demo',
      rollout,
      revision: k.head,
      revisions: [{ revision: 0, at: 0, ops: [] }, ...k.edits],
      ...(outcome ? { outcome } : {}),
      tags,
      note,
      marks,
      deleted: [...deleted].filter((s) => s < end),
      reviewed,
      parts: end === Infinity ? [] : [`${rollout}/b`],
      trajectory: { ...k.recorded, steps: left },
      changed: left
        .filter(
          (s) =>
            JSON.stringify([s.thought, s.actions]) !==
            JSON.stringify([
              k.recorded.steps.find((x) => x.index === s.index)?.thought,
              k.recorded.steps.find((x) => x.index === s.index)?.actions,
            ]),
        )
        .map((s) => s.index),
      replays: k.replays,
      ...(k.locked ? { locked: k.locked } : {}),
    };
  }
  /** `others`: what is not about annotations. */
  answer(others: Answer): Answer {
    return async (method, p) => {
      await this.before(method, p);
      const rollout = String(p['rollout']),
        k = this.#all.get(rollout);
      switch (method) {
        case 'annotation/get':
          return this.view(rollout);
        case 'annotation/edit':
          return this.edit(rollout, p['base'] as number, p['ops'] as AnnotationOp[]);
        case 'annotation/undo':
          k!.head = k!.edits.filter((e) => e.revision < k!.head).at(-1)?.revision ?? 0;
          return this.view(rollout);
        case 'annotation/redo':
          k!.head = k!.edits.find((e) => e.revision > k!.head)?.revision ?? k!.head;
          return this.view(rollout);
        case 'annotation/replay': {
          const r = await this.replay(rollout, k!.head);
          k!.replays.push(r);
          return this.view(rollout);
        }
        case 'review/queue':
          return this.queue;
        case 'trajectory/list':
          return {
            rows: this.known.map((tag) => ({
              ...[...this.#all.values()][0]!.recorded.row,
              annotated: { revision: 1, tags: [tag] },
            })),
            total: this.known.length,
          };
        case 'pool/add': {
          if (k!.recorded.row.outcome !== 'success' && p['override'] === undefined)
            throw {
              kind: 'params.invalid',
              message: 'No verifier saw a success of it.',
              remedy: 'Give a reason, or replay it.',
            };
          this.pool.push(rollout);
          return this.#pool();
        }
        case 'pool/list':
          return this.#pool();
        case 'trajectory/get':
          return k ? k.recorded : others(method, p);
        default:
          return others(method, p);
      }
    };
  }
  #of(rollout: string): Kept {
    const k = this.#all.get(rollout);
    if (!k) throw { kind: 'not.found', message: `There is no trajectory ${rollout}.`, remedy: '' };
    return k;
  }
  #pool(): PoolView {
    return {
      families: [
        {
          family: 'desk/choose-fruit',
          entries: this.pool.map((rollout) => ({
            rollout,
            task: 't',
            steps: 3,
            source: 'rollout',
            uses: 0,
            enabled: true,
            usable: true,
          })),
          successes: this.pool.length,
          uses: 0,
          rollouts: 5,
          neverSolved: false,
        },
      ],
      entries: this.pool.length,
      injections: 0,
      neverSolved: 0,
      covered: 0,
      active: true,
    };
  }
}
