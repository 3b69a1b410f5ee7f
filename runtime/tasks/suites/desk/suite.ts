import type { Action, FamilyId, Size, TaskId } from '../../../domain/index.js';
import { StudioError, id, random } from '../../../domain/index.js';
import type { Oracle, OracleSource, Task, TaskSource } from '../../types.js';
import type { Asked, Instance, Template } from './kit.js';
import type { Move } from './moves.js';
import { Sight } from './moves.js';
import { scene } from './scene.js';
import { wordsOf, type Lexicon } from './lexicon.js';
import {
  asksForNear,
  belongs,
  contentsOf,
  drawsFrom,
  HOLDOUTS,
  LAST_SEED,
  placedIn,
  probeSeed,
  splitOf,
  type Holdout,
  type ProbeSet,
  type Split,
} from './splits.js';
import { templates } from './templates/index.js';

/** The built-in suite "desk": real applications of our image, each task drawn from a template by a seed. */
export interface DeskSuite extends TaskSource, OracleSource {
  /** The ways a family's tasks can be held out: a template that names no word has no unseen ones. */
  holdouts(family: FamilyId): readonly Holdout[];
}

/** Draws until a task of the right side of the split turns up; the rarest sides have one in a hundred. */
const DRAWS = 3000;

const deskFamily = (name: string): FamilyId => id<FamilyId>(`desk/${name}`);

/** `screen` is where windows are placed; it must be the desktops' size, at least 640x400. */
export function deskSuite(o: { readonly screen?: Size } = {}): DeskSuite {
  const screen = o.screen ?? { width: 640, height: 400 };
  const byFamily = new Map<string, Template>(templates.map((t) => [deskFamily(t.name), t]));
  const templateOf = (family: string): Template => {
    const t = byFamily.get(family);
    if (!t)
      throw new StudioError(
        'task.invalid',
        `The suite desk has no template ${family}.`,
        'List them with `dart-studio tasks list`.',
      );
    return t;
  };
  const taskOf = (family: FamilyId, seed: number): Task => {
    const t = templateOf(family),
      made = draw(t, seed, screen);
    return taskFrom(t, String(seed), made, made);
  };
  const siblingsOf = (family: FamilyId, seed: number): Task[] => siblings(templateOf(family), seed, screen);
  const script = (task: Task, which: 'solve' | 'miss'): Oracle => {
    const { family, seed, sibling } = parsed(task.id);
    if (sibling) throw notATask(task.id);
    return runScript(draw(templateOf(family), seed, screen)[which], `${task.id}/${which}`);
  };
  return {
    families: templates.map((t) => ({
      id: deskFamily(t.name),
      split: t.heldout ? 'heldout' : 'train',
      fresh: t.heldout === 'fresh',
      apps: t.apps,
      steps: t.steps,
      infeasible: t.infeasible === true,
    })),
    task: taskOf,
    byId: (task) => {
      const { family, seed, sibling } = parsed(task);
      if (!sibling) return taskOf(family, seed);
      const found = siblingsOf(family, seed).find((t) => t.id === task);
      if (!found) throw notATask(task);
      return found;
    },
    siblings: (task) => {
      const { family, seed, sibling } = parsed(task.id);
      return sibling ? [] : siblingsOf(family, seed);
    },
    oracle: (task) => script(task, 'solve'),
    nearMiss: (task) => script(task, 'miss'),
    holdouts: remembered((family: FamilyId) => {
      const has = (set: ProbeSet, h: Holdout): boolean => {
        const seed = probeSeed(set, h, 0);
        return drawn(templateOf(family), seed, splitOf(seed)!, screen) !== undefined;
      };
      return HOLDOUTS.filter((h) => has('dev', h) && has('test', h));
    }),
  };
}

const taskFrom = (t: Template, number: string, { config }: Instance, asked: Asked): Task => ({
  id: id<TaskId>(`${deskFamily(t.name)}#${number}`),
  family: deskFamily(t.name),
  instruction: asked.instruction,
  config,
  evaluator: asked.evaluator,
  relatedApps: t.apps,
  infeasible: t.infeasible === true,
  maxSteps: Math.max(4, t.steps * 2 + 3),
});

/** The other tasks of a training seed's screen, but for what is held out. */
function siblings(t: Template, seed: number, screen: Size): Task[] {
  const split = splitOf(seed);
  if (split?.set !== 'train' || t.heldout) return [];
  const made = draw(t, seed, screen),
    { words } = drawsFrom(split, seed);
  // Siblings that are left out count too: what is held out may change, and a task keeps its id.
  return (made.siblings?.() ?? []).flatMap((asked, k) =>
    belongs(split, { ...asked, config: made.config }, words) ? [taskFrom(t, `${seed}+${k + 1}`, made, asked)] : [],
  );
}

/** TEMPLATE#SEED, or TEMPLATE#SEED+NUMBER: a sibling of that task. */
function parsed(task: string): { family: FamilyId; seed: number; sibling: boolean } {
  const m = /^(.*)#(\d+)(\+\d+)?$/.exec(task);
  if (!m) throw notATask(task);
  return { family: id<FamilyId>(m[1]!), seed: Number(m[2]), sibling: m[3] !== undefined };
}
const notATask = (task: string): StudioError =>
  new StudioError(
    'task.invalid',
    `${task} is not a task of the suite desk.`,
    'Its tasks are written desk/TEMPLATE#SEED.',
  );

/** Tasks are drawn to find it out, and it is always the same. */
function remembered<K, V>(of: (k: K) => V): (k: K) => V {
  const known = new Map<K, V>();
  return (k) => {
    const v = known.get(k) ?? of(k);
    known.set(k, v);
    return v;
  };
}

/** The instance of a seed, which says what it may and may not have in common with training (splits.ts). */
function draw(t: Template, seed: number, screen: Size): Instance {
  const split = splitOf(seed);
  if (!split)
    throw new StudioError('task.invalid', `${seed} is not a seed.`, `Seeds are whole numbers from 0 to ${LAST_SEED}.`);
  return (
    drawn(t, seed, split, screen) ??
    (() => {
      throw new StudioError(
        'task.invalid',
        `The template ${t.name} has no task of this split: nothing in its instruction can be held out that way.`,
        'Evaluate it on another split.',
      );
    })()
  );
}
function drawn(
  t: Template,
  seed: number,
  split: ReturnType<typeof splitOf> & object,
  screen: Size,
): Instance | undefined {
  const { words, dress } = drawsFrom(split, seed);
  let placed = false;
  for (let k = 0; k < DRAWS; k++) {
    const r = scene(`desk/${t.name}/${seed}/${k}`, words, dress),
      made = t.build(r, screen);
    if (belongs(split, made, words, r.corners)) return made;
    // A template whose windows vary in size has room in some draws only.
    placed ||= split.set !== 'legacy' && split.holdout === 'places' && placedIn(split.set as ProbeSet, r.corners);
    // A template whose instruction names nothing that the split holds out never will.
    if (
      k === HOPELESS &&
      split.set !== 'legacy' &&
      split.holdout &&
      !(placed || promising(split, made.instruction, words))
    )
      return undefined;
  }
  return undefined;
}
const HOPELESS = 60;
function promising({ holdout }: Split, instruction: string, drawn: Lexicon): boolean {
  if (holdout === 'places') return false;
  if (holdout === 'near') return asksForNear(drawn, instruction);
  const { words, numbers, pairs } = contentsOf(instruction);
  if (holdout === 'words') {
    const own = new Set(wordsOf(drawn));
    return numbers.length > 0 || words.some((w) => own.has(w));
  }
  return holdout !== 'pairs' || pairs.length > 0;
}

/** Performs one action of the script at a time; after its end, `finished`. */
function runScript(moves: readonly Move[], seed: string): Oracle {
  const r = random(seed);
  let at = 0;
  return {
    async next(desktop): Promise<Action> {
      const move = moves[at];
      if (!move) return { type: 'finished' };
      const done = await move(new Sight(desktop, r));
      if ('again' in done) return done.again;
      at++;
      return done;
    },
  };
}
