/**
 * The turns of one episode: observe, decide, perform, settle, until the policy ends it or its cap is used up. A person
 * who steers acts between the policy's turns; the cap counts only the policy's turns.
 */
import type { Action, FrameRef, RejectedAnswer, Screenshot, Step, StepTimings } from '../domain/index.js';
import { StudioError, isEncoded, isOutgrown, isTerminal, waitMsOf } from '../domain/index.js';
import { ignoreFailure, orUndefined } from '../concurrency/failures.js';
import type { Desktop } from '../cluster/types.js';
import type { Before } from '../data/types.js';
import type { Decision, InvalidAnswer, PolicySession } from '../policy/types.js';
import { abortable } from './clock.js';
import type { DesktopGuard } from './desktopGuard.js';
import { ProgressOfEpisode } from './progressChecks.js';
import type { HumanStep, Person, TurnEnd } from './steering.js';
import type { TimeLimit } from './timeLimit.js';
import type { EpisodeDeps, EpisodeRequest, StepAbout } from './types.js';

export type TurnsEnd =
  /** `full`: the prompt outgrew the model's context before the cap was reached. */
  | { readonly how: 'ended' | 'cap'; readonly last: Action | undefined; readonly full?: true }
  /** The desktop's programs do not come to rest, and the next screen would depend on the clock (`mustRest`). */
  | { readonly how: 'restless' }
  /** The policy gave two invalid answers in a row. */
  | { readonly how: 'invalid'; readonly message: string };

export interface TurnsContext {
  readonly deps: EpisodeDeps;
  readonly request: EpisodeRequest;
  readonly desktop: Desktop;
  readonly policy: PolicySession;
  readonly limit: TimeLimit;
  readonly guard: DesktopGuard;
  /** Each step is appended when it is complete. */
  readonly steps: Step[];
}

/** A screen that is being stored, and the ms it took to capture. */
interface Observation {
  readonly frame: Screenshot;
  readonly stored: Promise<FrameRef>;
  readonly ms: number;
}

export class Turns {
  readonly #c: TurnsContext;
  readonly #progress = new ProgressOfEpisode();
  #turn = 0;
  #last: Action | undefined;
  /** Proposals that a person has declined on the screen before step `index`. */
  #declined = { index: 0, n: 0 };
  /** Only for a branch: the screen that it begins with, until somebody acts. */
  #begins: Observation | undefined;

  constructor(c: TurnsContext) {
    this.#c = c;
  }

  /**
   * Acts out what a branch shares with another rollout, before `run`. Rejects with `rollout.diverged` where a screen
   * (also the one that the branch begins with) or the instruction differs from the recorded one.
   */
  async actOut(before: Before | undefined, instruction: string): Promise<void> {
    if (!before) throw diverged('the rollout it branches off from cannot be read');
    if (before.instruction !== instruction) throw diverged('the task asks for something else');
    for (const step of before.steps.slice(0, -1)) {
      const seen = await this.#observe(step);
      this.#recycle(seen);
      this.#turn++;
      this.#c.policy.acted(step.actions);
      const { perform, settle, settled, ended, invalid } = await this.#act(step.actions);
      if (ended || !settled || invalid !== undefined)
        throw diverged(`what was done in step ${step.index + 1} had another effect`);
      this.#add({ ...step, settled, timings: { observe: seen.ms, decide: 0, queue: 0, perform, settle } });
    }
    this.#begins = await this.#observe(before.steps.at(-1));
  }

  async run(): Promise<TurnsEnd> {
    const { request: r, steps } = this.#c;
    for (;;) {
      const person = r.steering?.person;
      const end = person && (await this.#personActs(person));
      if (person && this.#begins) this.#recycle(this.#begins);
      if (end?.next === 'end') return { how: 'ended', last: end.last };
      if (this.#turn >= r.order.cap) return { how: 'cap', last: this.#last };
      const index = steps.length;
      const seen = (person ? undefined : this.#begins) ?? (await this.#observe());
      this.#begins = undefined;
      const made = await this.#decide(seen);
      if (made === 'outgrown') return { how: 'cap', last: this.#last, full: true };
      const { decided, ...before } = made;
      const answer = person && end?.next === 'propose' ? await this.#consents(person, index, decided) : true;
      if (answer !== true) {
        this.#c.policy.retract?.();
        if (answer === false) this.#declined = { index, n: this.#declinedAt(index) + 1 };
        continue;
      }
      this.#turn++;
      if (decided instanceof StudioError) {
        const timings = { observe: seen.ms, decide: 0, queue: 0, perform: 0, settle: 0 };
        await this.#complete(index, seen, { ...answerOf(decided), ...before }, true, timings);
        return { how: 'invalid', message: decided.message };
      }
      const acted = await this.#act(decided.actions),
        progress = acted.ended || acted.invalid !== undefined ? undefined : await this.#progress.ask(this.#c);
      await this.#complete(index, seen, { ...decided, ...before, progress }, acted.settled, {
        observe: seen.ms,
        decide: decided.computeMs,
        queue: decided.queueMs,
        perform: acted.perform,
        settle: acted.settle,
      });
      if (acted.invalid !== undefined) return { how: 'invalid', message: acted.invalid };
      if (acted.ended) return { how: 'ended', last: this.#last };
      if (!acted.settled && this.#c.deps.mustRest) return { how: 'restless' };
    }
  }

  #declinedAt(index: number): number {
    return this.#declined.index === index ? this.#declined.n : 0;
  }

  /** The person controls the desktop until they hand it back; each of their steps is recorded when it is complete. */
  #personActs(person: Person): Promise<TurnEnd> {
    const { request: r, limit, guard, steps, policy } = this.#c;
    r.onPhase('perform');
    const record = (human: HumanStep): void => {
      policy.acted(human.actions);
      this.#last = human.actions.at(-1) ?? this.#last;
      this.#add({ ...human, index: steps.length, origin: 'human' });
    };
    const turn = { index: steps.length, left: r.order.cap - this.#turn, signal: limit.signal, record };
    return limit.suspendedDuring(guard.free(person.act(turn), 'The turn of a person'));
  }

  /** `recorded`: a step that was decided on this very screen. */
  async #observe(recorded?: Step): Promise<Observation> {
    const { deps, request: r, desktop, guard } = this.#c;
    const t0 = deps.clock.now();
    r.onPhase('observe');
    const frame = await guard.call(look(deps, desktop), 'observe');
    const ms = deps.clock.now() - t0;
    // Storing the screen runs while the policy decides and acts; the step is complete when all have finished.
    const stored = deps.frames.put(frame);
    ignoreFailure(stored, 'the step that waits for the frame fails with it');
    if (recorded && (await whenStored(this.#c, stored)).hash !== recorded.frame.hash)
      throw diverged(`the screen of step ${recorded.index + 1} differs`);
    return { frame, stored, ms };
  }
  /** Nothing reads the frame once it is decided on and stored, so the desktop may reuse its memory. */
  #recycle({ frame, stored }: Pick<Observation, 'frame' | 'stored'>): void {
    void orUndefined(stored, 'a frame that was not stored is left to the garbage collector').then((ref) => {
      if (ref !== undefined && !isEncoded(frame)) this.#c.desktop.recycle?.(frame);
    });
  }

  /** The policy's decision on this screen, or the error of an invalid answer; `outgrown`: there is no room for one. */
  async #decide(seen: Observation): Promise<Decided | 'outgrown'> {
    const { request: r, policy, limit } = this.#c;
    r.onPhase('decide');
    try {
      return await decideOrInvalid(policy, seen.frame, limit.signal);
    } catch (e) {
      // On the first turn there is no history yet: the model's context is too short for the task.
      if (this.#turn === 0 || !(e instanceof StudioError) || !isOutgrown(e.error)) throw e;
      return 'outgrown';
    } finally {
      this.#recycle(seen);
    }
  }

  #consents(person: Person, index: number, decided: Decision | StudioError): Promise<boolean | 'unseen'> {
    const { request: r, limit, guard } = this.#c;
    const decision = decided instanceof StudioError ? { ...answerOf(decided), actions: [] } : decided;
    const proposed = { index, left: r.order.cap - this.#turn, signal: limit.signal, decision };
    return limit.suspendedDuring(guard.free(person.consent(proposed), 'The consent of a person'));
  }

  /** Performs the actions up to a terminal one, and waits after each until the desktop is at rest. Times in ms. */
  async #act(actions: readonly Action[]): Promise<{
    readonly perform: number;
    readonly settle: number;
    readonly settled: boolean;
    readonly ended: boolean;
    /** Why an action cannot be performed, where the policy and not the desktop is at fault. */
    readonly invalid?: string;
  }> {
    const { deps, request: r, desktop, guard } = this.#c;
    let perform = 0,
      settle = 0,
      settled = true;
    for (const action of actions) {
      this.#last = action;
      if (isTerminal(action)) return { perform, settle, settled, ended: true };
      const t1 = deps.clock.now();
      r.onPhase('perform');
      const performed = guard.call(desktop.perform(action), 'perform', waitMsOf(action)),
        invalid = await performed.then(() => undefined, whatIsInvalid);
      const t2 = deps.clock.now();
      if (invalid !== undefined) return { perform: perform + t2 - t1, settle, settled, ended: false, invalid };
      r.onPhase('settle');
      settled = await guard.rest(desktop, deps);
      perform += t2 - t1;
      settle += deps.clock.now() - t2;
      if (await this.#over()) return { perform, settle, settled, ended: true };
    }
    return { perform, settle, settled, ended: false };
  }

  /** Whether the task has ended by itself. */
  async #over(): Promise<boolean> {
    const { deps, request: r, desktop, guard, limit } = this.#c;
    if (!deps.tasks.over) return false;
    return guard.free(deps.tasks.over(r.task, desktop, limit.signal), 'Asking whether the task has ended');
  }

  async #complete(
    index: number,
    seen: Observation,
    d: Partial<Decision> & Omit<Decided, 'decided'> & Pick<Step, 'progress'>,
    settled: boolean,
    timings: StepTimings,
  ): Promise<void> {
    const declined = this.#declinedAt(index);
    const step: Step = {
      index,
      frame: await whenStored(this.#c, seen.stored),
      actions: upToEnd(d.actions ?? []),
      origin: 'policy',
      settled,
      timings,
      thought: d.thought,
      tokens: d.tokens,
      prompt: d.prompt,
      rejected: d.rejected.length > 0 ? d.rejected : undefined,
      version: d.version,
      ...(d.progress ? { progress: d.progress } : {}),
      ...(declined > 0 ? { declined } : {}),
    };
    this.#add(step, d.alternatives, {
      labels: d.labels,
      rejectedLabels: d.rejectedLabels.length > 0 ? d.rejectedLabels : undefined,
      places: d.places,
      replica: d.replica,
    });
  }

  #add(step: Step, alternatives?: Decision['alternatives'], about?: StepAbout): void {
    this.#c.steps.push(step);
    this.#c.request.onStep(step, alternatives, about);
  }
}

/**
 * The actions of an answer that were performed: none after one that ends the episode. The answer's tokens stay
 * complete.
 */
function upToEnd(actions: readonly Action[]): readonly Action[] {
  const end = actions.findIndex(isTerminal);
  return end < 0 ? actions : actions.slice(0, end + 1);
}

const diverged = (why: string): StudioError =>
  new StudioError(
    'rollout.diverged',
    `This branch was given up: ${why}.`,
    'Nothing needs to be done: it is counted, and its group goes on without it.',
  );

/**
 * Waits for a frame to be stored. On a full disk that takes until there is room, which does not count as time of the
 * rollout.
 */
export const whenStored = (
  { limit, guard }: Pick<TurnsContext, 'limit' | 'guard'>,
  stored: Promise<FrameRef>,
): Promise<FrameRef> => limit.suspendedDuring(guard.free(stored, 'Storing a frame'));

/** The present screen as the policy takes it. */
export const look = ({ policy }: Pick<EpisodeDeps, 'policy'>, desktop: Desktop): Promise<Screenshot> =>
  policy.takesEncoded && desktop.screenshot ? desktop.screenshot() : desktop.observe();

/** A decision, or the error of the last invalid answer; the invalid answers before it. */
interface Decided {
  readonly decided: Decision | StudioError;
  readonly rejected: readonly RejectedAnswer[];
  /** The labels of the tokens of each rejected answer. */
  readonly rejectedLabels: readonly (readonly string[])[];
}

/**
 * Retries once after an invalid answer, because a sampled answer may be invalid by chance. After the second, the error
 * is the result. The first was sampled, too, and is recorded.
 */
async function decideOrInvalid(policy: PolicySession, frame: Screenshot, signal: AbortSignal): Promise<Decided> {
  const rejected: RejectedAnswer[] = [],
    rejectedLabels: (readonly string[])[] = [];
  for (;;) {
    try {
      return { decided: await abortable(policy.decide(frame, signal), signal, 'A decision'), rejected, rejectedLabels };
    } catch (e) {
      if (!(e instanceof StudioError) || e.kind !== 'policy.invalid') throw e;
      if (rejected.length > 0) return { decided: e, rejected, rejectedLabels };
      const { thought: text = '', tokens, prompt, version, labels } = answerOf(e);
      rejected.push({ text, reason: e.message, tokens, prompt, version });
      rejectedLabels.push(labels ?? []);
    }
  }
}

/** Why an action cannot be performed by any desktop, which is the policy's mistake. Throws every other error again. */
function whatIsInvalid(e: unknown): string {
  if (e instanceof StudioError && e.kind === 'policy.invalid') return e.message;
  throw e;
}

/** The answer that an invalid-answer error carries: it was sampled, and is trained like all others. */
function answerOf(e: StudioError): Partial<Decision> {
  const { text: thought, ...sampled } = (e.error.details ?? {}) as Partial<InvalidAnswer>,
    { tokens, prompt, version, labels, alternatives } = sampled;
  return { actions: [], thought, tokens, prompt, version, labels, alternatives };
}
