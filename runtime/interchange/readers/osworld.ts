import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isTerminal } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import type { Action, Size } from '../../domain/index.js';
import { parseActions } from '../../policy/actions/uiTars.js';
import { lines, parseLine, readSmall, type ImportFolder } from '../folder.js';
import { numberIn } from '../json.js';
import { ownKey, parseOwn, type Own } from '../own.js';
import { CodeReader } from '../pyautoguiRead.js';
import type { PyCall } from '../../domain/pyautogui/python.js';
import { jsonObject } from '../tasks.js';
import { Unusable, isObject, limits, reworded, textField } from '../types.js';
import type { Draft, DraftStep, Found, Picture } from '../types.js';
import { Sizes, Steps, idOfFolder, one, pictureAt, rewardOf, thoughtOf, writtenAt } from './read.js';
import type { ReadContext, Unit } from './read.js';

/** A file beside traj.jsonl with what OSWorld keeps elsewhere; ours, or a copy of the task's own file. */
const besides = ['dart-studio.json', 'task_config.json', 'task.json'] as const;

/**
 * One task folder of OSWorld's results: traj.jsonl, result.txt, screenshots. The screenshot of line n shows the screen
 * after action n and the first one is usually not kept: then the first action has no screen it was decided on, and is
 * left out.
 */
export async function* readOsworld(c: ReadContext, u: Unit): AsyncGenerator<Found, void, undefined> {
  yield* one(c.folder.name(u.path), () => read(c, u));
}

async function read(c: ReadContext, u: Unit): Promise<Found> {
  const where = c.folder.name(u.path),
    hash = createHash('sha256'),
    domain = basename(dirname(u.dir)),
    result = await c.folder.maybe(u.dir, 'result.txt'),
    log = await ActionLog.open(c.folder, u.dir);
  for await (const { line, text } of lines(u.path)) {
    if (text?.trim() === '') continue;
    try {
      const o = parseLine(text);
      hash.update(text!);
      if (!isObject(o)) throw new Unusable('the line is not a JSON object');
      const failed = textField(o, 'Error') ?? textField(o, 'error');
      if (failed !== undefined && o['action'] === undefined)
        throw new Unusable(`its runner stopped with an error (${failed.slice(0, 120)}): it has no outcome`);
      if (log.steps.ended) {
        log.notes.push(`lines after its end (from line ${line}) were left out`);
        break;
      }
      await log.add(o);
    } catch (e) {
      throw reworded(e, { where: `${where}:${line}` });
    }
  }
  if (log.first) throw new Unusable('traj.jsonl is empty');
  if (!result) throw new Unusable('there is no result.txt: it has no outcome');
  if (log.steps.list.length === 0)
    throw new Unusable('its only action has no screenshot from before it, so nothing is left', {
      remedy: 'Keep the first screen as step_0.png in the folder.',
    });
  const score = await readSmall(result, 256);
  hash.update(score);
  const { instruction: said, own } = await besideLog(c, u, domain),
    instruction = said ?? (await c.tasks.instruction(domain, basename(u.dir))) ?? '';
  if (instruction === '')
    log.notes.push(
      'no instruction was found: name the folder of task files with --tasks; without it a success stays out of the pool',
    );
  // An instruction found later, with --tasks, makes the trajectory worth importing again.
  hash.update(instruction);
  const task = own?.task ?? idOfFolder(u.dir),
    written = await writtenAt(u.path),
    { ended } = log.steps;
  const draft: Draft = {
    format: 'osworld',
    where,
    fingerprint: hash.digest('hex').slice(0, 12),
    task,
    family: own?.family ?? task,
    instruction,
    steps: withOrigins(log.steps.list, own),
    notes: [...log.steps.notes, ...log.notes],
    outcome: { reward: rewardOf(score), truncated: own?.truncated ?? !ended },
    last: ended ? undefined : log.screen,
    cap: own?.cap ?? Math.max(await maxSteps(c, u), log.steps.list.length + log.dropped),
    startedAt: own?.startedAt ?? log.startedAt ?? written,
    endedAt: own?.endedAt ?? log.endedAt ?? written,
  };
  return { draft };
}

/** Lines of traj.jsonl as steps. A line names the screen after its action; a step needs the one before. */
class ActionLog {
  readonly steps = new Steps();
  /** Fields that had to be left out, in words. */
  readonly notes: string[] = [];
  /** Whether no line was read yet. */
  first = true;
  dropped = 0;
  startedAt: number | undefined;
  endedAt: number | undefined;
  /** The screen that the next action is decided on. */
  screen: Picture | undefined;
  readonly #sizes = new Sizes();
  readonly #code = new CodeReader('absolute');
  readonly #picture: (name: string) => Promise<Picture>;
  /** Names of screenshots by step number. */
  readonly #shots: ReadonlyMap<number, string>;
  #lastStep = -1;

  private constructor(shots: ReadonlyMap<number, string>, picture: (name: string) => Promise<Picture>) {
    this.#shots = shots;
    this.#picture = picture;
  }
  static async open(folder: ImportFolder, dir: string): Promise<ActionLog> {
    const shots = new Map<number, string>();
    for (const name of await readdir(dir)) {
      const n = /^step_(\d{1,6})(?:[_@.].*)?\.png$/i.exec(name)?.[1];
      if (n !== undefined && !shots.has(Number(n))) shots.set(Number(n), name);
    }
    const log = new ActionLog(shots, async (name) => pictureAt(folder, await folder.file(dir, name))),
      first = shots.get(0);
    if (first !== undefined) log.screen = await log.#picture(first);
    return log;
  }

  /** Takes in one line. Throws Unusable when it cannot be a step. */
  async add(o: Record<string, unknown>): Promise<void> {
    const n = numberIn(o['step_num']),
      shown = textField(o, 'screenshot_file') ?? this.#shots.get(n),
      response = textField(o, 'response'),
      before = this.screen,
      after = shown === undefined ? undefined : await this.#picture(shown),
      known = before ?? after;
    if (!known) throw new Unusable('there is no screenshot before or after the action');
    const size = await this.#sizes.of(known),
      actions = withAnswer(actionsOf(o['action'], this.#code, size), response, size),
      at = timestamp(o['action_timestamp']);
    this.startedAt ??= at;
    this.endedAt = at ?? this.endedAt;
    if (before) {
      // Several actions of one answer are lines of one number; its thought is told once.
      const thought = n === this.#lastStep ? undefined : thoughtOf(response);
      this.steps.add({ frame: before, size, actions, origin: 'policy', thought, at });
    } else if (this.first) {
      this.dropped++;
      this.notes.push('the results keep no screenshot from before the first action, so that action was left out');
    } else throw new Unusable('there is no screenshot from before the action');
    this.#lastStep = n;
    this.first = false;
    this.screen = actions.some(isTerminal) ? before : after;
  }
}

/** Restores who acted, as our own export noted it. */
function withOrigins(steps: readonly DraftStep[], own: Own | undefined): readonly DraftStep[] {
  return own?.origins.length === steps.length ? steps.map((s, i) => ({ ...s, origin: own.origins[i]! })) : steps;
}

/** Facts in files beside traj.jsonl. */
async function besideLog(
  c: ReadContext,
  u: Unit,
  domain: string,
): Promise<{ readonly instruction?: string | undefined; readonly own?: Own | undefined }> {
  for (const name of [...besides, `${basename(u.dir)}.json`]) {
    const file = await c.folder.maybe(u.dir, name);
    if (!file) continue;
    try {
      const o = await jsonObject(file),
        own = parseOwn(o[ownKey]);
      return { instruction: own?.instruction ?? textField(o, 'instruction'), own };
    } catch (e) {
      throw reworded(e, { where: c.folder.name(file) });
    }
  }
  return { instruction: await c.tasks.instruction(domain, idOfFolder(u.dir)) };
}

/** `max_steps` of the args.json above, 0 when it is not there. */
async function maxSteps(c: ReadContext, u: Unit): Promise<number> {
  for (let dir = dirname(u.dir), up = 0; up < 3 && dir.length >= c.folder.root.length; dir = dirname(dir), up++) {
    const file = await orUndefined(c.folder.maybe(dir, 'args.json'), 'the cap is then the number of steps'),
      args = file === undefined ? undefined : await orUndefined(jsonObject(file), 'likewise'),
      n = numberIn(args?.['max_steps']);
    if (Number.isInteger(n) && n > 0 && n <= 100_000) return n;
  }
  return 0;
}

/** `20250713@161226123456`: the runner's clock, taken as UTC. */
function timestamp(v: unknown): number | undefined {
  const m = typeof v === 'string' ? /^(\d{4})(\d\d)(\d\d)@(\d\d)(\d\d)(\d\d)(\d{0,6})$/.exec(v) : null;
  return m
    ? Date.UTC(
        Number(m[1]),
        Number(m[2]) - 1,
        Number(m[3]),
        Number(m[4]),
        Number(m[5]),
        Number(m[6]),
        Number((m[7] ?? '').padEnd(3, '0').slice(0, 3)),
      )
    : undefined;
}

function actionsOf(v: unknown, code: CodeReader, screen: Size): Action[] {
  if (typeof v === 'string') {
    const word = v.trim();
    if (word.length > limits.text) throw new Unusable('its code is too long');
    if (word === 'DONE') return [{ type: 'finished' }];
    if (word === 'FAIL') return [{ type: 'fail' }];
    if (word === 'WAIT') return [{ type: 'wait' }];
    return code.read(v, screen);
  }
  if (!isObject(v)) throw new Unusable('action is neither code nor an object');
  if (typeof v['command'] === 'string') return actionsOf(v['command'], code, screen);
  if (typeof v['action_type'] === 'string') return computer13(v, code, screen);
  throw new Unusable('action is an object of an unknown action space');
}

/** OSWorld's other action space: objects with an `action_type`, its parameters beside it or below `parameters`. */
function computer13(v: Record<string, unknown>, code: CodeReader, screen: Size): Action[] {
  const type = String(v['action_type']),
    p = isObject(v['parameters']) ? v['parameters'] : v;
  const pick = (...names: string[]): PyCall['named'] =>
    Object.fromEntries(names.flatMap((n) => (typeof p[n] === 'number' || typeof p[n] === 'string' ? [[n, p[n]]] : [])));
  const call = (name: string, named: PyCall['named'] = {}, args: PyCall['args'] = []): Action[] =>
    code.calls([{ name, args, named }], screen);
  switch (type) {
    case 'DONE':
      return [{ type: 'finished' }];
    case 'FAIL':
      return [{ type: 'fail' }];
    case 'WAIT':
      return [{ type: 'wait' }];
    case 'MOVE_TO':
      return call('pyautogui.moveTo', pick('x', 'y'));
    case 'CLICK':
      return call('pyautogui.click', {
        ...pick('x', 'y', 'button'),
        ...(p['num_clicks'] === undefined ? {} : { clicks: numberIn(p['num_clicks']) }),
      });
    case 'RIGHT_CLICK':
      return call('pyautogui.rightClick', pick('x', 'y'));
    case 'DOUBLE_CLICK':
      return call('pyautogui.doubleClick', pick('x', 'y'));
    case 'DRAG_TO':
      return call('pyautogui.dragTo', pick('x', 'y'));
    case 'SCROLL': {
      const dx = numberIn(p['dx'] ?? 0),
        dy = numberIn(p['dy'] ?? 0);
      return [
        ...(dy === 0 ? [] : call('pyautogui.scroll', { clicks: dy })),
        ...(dx === 0 ? [] : call('pyautogui.hscroll', { clicks: dx })),
      ];
    }
    case 'TYPING':
      return call('pyautogui.write', { message: typeof p['text'] === 'string' ? p['text'] : null });
    case 'PRESS':
      return call('pyautogui.press', { keys: typeof p['key'] === 'string' ? p['key'] : null });
    case 'HOTKEY':
      if (Array.isArray(p['keys']) && p['keys'].every((k) => typeof k === 'string'))
        return call('pyautogui.hotkey', {}, p['keys'] as string[]);
  }
  throw new Unusable(`there is no action here for ${type.slice(0, 40)}`);
}

/** DONE and FAIL have no words of their own; the answer they came from has. */
function withAnswer(actions: Action[], response: string | undefined, screen: Size): Action[] {
  const last = actions.at(-1);
  if (
    response === undefined ||
    response.length > limits.answer ||
    (last?.type !== 'finished' && last?.type !== 'fail') ||
    ('answer' in last ? last.answer : 'reason' in last ? last.reason : undefined) !== undefined
  )
    return actions;
  try {
    const said = parseActions(response, { mode: 'absolute', screen }).actions.at(-1);
    return said?.type === last.type ? [...actions.slice(0, -1), said] : actions;
  } catch {
    return actions;
  }
}
