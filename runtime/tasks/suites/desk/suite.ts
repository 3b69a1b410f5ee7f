import type { Action, FamilyId, Size, TaskId } from '../../../domain/index.js';
import { StudioError, hash32, id, random } from '../../../domain/index.js';
import type { Oracle, OracleSource, Task, TaskSource } from '../../types.js';
import type { Instance, Template } from './kit.js';
import type { Move } from './moves.js';
import { Sight } from './moves.js';
import { templates } from './templates/index.js';

/** The built-in suite "desk": real applications of our image, each task drawn from a template by a seed. */
export type DeskSuite = TaskSource & OracleSource;

/** Seeds from here on are held out: no training seed makes a task with the same content. */
const HELDOUT_FROM = 1_000_000;
/** One content in so many is reserved for held-out seeds. */
const RESERVED = 4;
/** Draws until a task of the right side of the split turns up; missing it by chance is about 0.75^200. */
const DRAWS = 200;

export const trainSeed = (n: number): number => n % HELDOUT_FROM;
export const heldoutSeed = (n: number): number => HELDOUT_FROM + n;

export const deskFamily = (name: string): FamilyId => id<FamilyId>(`desk/${name}`);

/** The templates of `npm run quickstart`: learnable by the small policy on two cores, over five applications. */
export const quickstartFamilies: readonly FamilyId[] = [
  'press-button',
  'press-two',
  'list-pick',
  'list-confirm',
  'entry-type',
  'form-one',
  'note-save',
  'note-replace',
  'calc-copy',
  'file-rename',
  'file-delete',
  'folder-new',
  'term-touch',
].map(deskFamily);

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
    return {
      id: id<TaskId>(`${family}#${seed}`),
      family,
      instruction: made.instruction,
      config: made.config,
      evaluator: made.evaluator,
      relatedApps: t.apps,
      infeasible: t.infeasible === true,
      maxSteps: Math.max(4, t.steps * 2 + 3),
    };
  };
  const parse = (task: string): { family: FamilyId; seed: number } => {
    const m = /^(.*)#(\d+)$/.exec(task);
    if (!m)
      throw new StudioError(
        'task.invalid',
        `${task} is not a task of the suite desk.`,
        'Its tasks are written desk/TEMPLATE#SEED.',
      );
    return { family: id<FamilyId>(m[1]!), seed: Number(m[2]) };
  };
  const script = (task: Task, which: 'solve' | 'miss'): Oracle => {
    const { family, seed } = parse(task.id);
    return runScript(draw(templateOf(family), seed, screen)[which], `${task.id}/${which}`);
  };
  return {
    families: templates.map((t) => ({
      id: deskFamily(t.name),
      split: t.heldout ? 'heldout' : 'train',
      apps: t.apps,
      steps: t.steps,
      infeasible: t.infeasible === true,
    })),
    task: taskOf,
    byId: (task) => {
      const { family, seed } = parse(task);
      return taskOf(family, seed);
    },
    oracle: (task) => script(task, 'solve'),
    nearMiss: (task) => script(task, 'miss'),
  };
}

/**
 * The instance of a seed. Contents are split by their hash, so that a held-out seed never repeats a task seen in
 * training.
 */
function draw(t: Template, seed: number, screen: Size): Instance {
  if (!Number.isSafeInteger(seed) || seed < 0)
    throw new StudioError('task.invalid', `${seed} is not a seed.`, 'Seeds are whole numbers from 0.');
  const heldout = seed >= HELDOUT_FROM;
  for (let k = 0; k < DRAWS; k++) {
    const made = t.build(random(`desk/${t.name}/${seed}/${k}`), screen);
    if ((hash32(JSON.stringify([made.instruction, made.config])) % RESERVED === 0) === heldout) return made;
  }
  throw new StudioError(
    'internal',
    `The template ${t.name} has too few different tasks to split.`,
    'Please report this.',
  );
}

/** One action of the script at a time; after its end, `finished`. */
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
