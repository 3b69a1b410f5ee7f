/**
 * Replay and verify, with its progress and what the verifier found for each revision; and the way into the experience
 * pool.
 */
import type { AnnotationView, PoolView, Replay, TrajectoryView } from '../../runtime/protocol/types.js';
import type { HostError, Requester } from '../protocol.js';
import { h, icon, replace, set, text, type Child } from '../ui/dom.js';
import { DraftField } from '../ui/draftField.js';
import { num } from '../ui/format.js';
import { roving } from '../ui/roving.js';
import { button } from '../ui/toolkit.js';
import { checksTable, outcomeBadge, outcomeLower } from '../inspector/header.js';
import { t } from '../ui/words.js';
import { keyOf, type Target } from './saver.js';

export interface VerifyIo extends Requester<'annotation/replay' | 'pool/add' | 'pool/list'> {
  error(e: unknown): HostError;
  announce(words: string): void;
  watch(desktop: string): void;
  open(rollout: string): void;
  /** A replay ended: the daemon's view has its verdict. */
  replayed(t: Target): void;
  left(): void;
}
export interface VerifyModel {
  readonly target: Target;
  readonly view: AnnotationView;
  readonly recorded: TrajectoryView;
  readonly locked: boolean;
  /** All edits are on disk. */
  readonly saved: boolean;
}
interface ReplayProgress {
  readonly abort?: AbortController;
  readonly step: number;
  readonly of: number;
  readonly desktop?: string;
}

export class Verify {
  readonly element: HTMLElement;
  readonly #io: VerifyIo;
  readonly #replay: HTMLElement;
  readonly #pool: HTMLElement;
  readonly #now = h('div', { class: 'an-verdict' });
  readonly #progress = h('div', { class: 'an-progress', hidden: true });
  readonly #bar = h('progress', { 'aria-label': t('Replay') });
  readonly #words = h('span', { role: 'status' });
  readonly #cancel: HTMLElement;
  readonly #watch: HTMLElement;
  readonly #trouble = h('div', { class: 'an-trouble', role: 'alert' });
  readonly #reason: DraftField;
  readonly #reasonSlot: HTMLElement;
  readonly #list = h('div', { class: 'an-replays' });
  readonly #inProgress = new Map<string, ReplayProgress>();
  readonly #troubles = new Map<string, HostError>();
  /** Rollouts in the pool of a run, as last heard. */
  #pooled: { readonly run: string; readonly rollouts: ReadonlySet<string> } | undefined;
  #asking = '';
  #model: VerifyModel | undefined;
  #adding: string | undefined;
  #drawn = '';

  constructor(io: VerifyIo) {
    this.#io = io;
    this.#replay = button(t('Replay and verify'), () => void this.run(), {
      icon: 'debug-start',
      title: t('Replay this revision on a fresh desktop and let the verifier judge it (v)'),
      keys: 'v',
    });
    this.#pool = button(t('Add to pool'), () => this.toPool(), {
      icon: 'database',
      title: t('Let training use it where all rollouts of a task fail (l)'),
      keys: 'l',
    });
    this.#cancel = button(t('Cancel'), () => this.cancel(), { title: t('Stop the replay; nothing is recorded of it') });
    this.#watch = button(
      t('Watch'),
      () => {
        const g = this.#current;
        if (g?.desktop) io.watch(g.desktop);
      },
      { icon: 'device-desktop', title: t('Watch the desktop it is replayed on') },
    );
    this.#progress.append(icon('loading codicon-modifier-spin'), this.#words, this.#bar, this.#watch, this.#cancel);
    this.#reason = new DraftField({
      label: t('Why it is added to the pool without a verified success'),
      bare: true,
      placeholder: t('Why, without a verified success?'),
      commit: () => undefined,
    });
    // Not saved automatically: a trajectory joins the pool only when the person says so.
    this.#reason.input.addEventListener(
      'keydown',
      (e) => {
        const { key } = e as KeyboardEvent;
        if (key !== 'Enter' && key !== 'Escape') return;
        e.preventDefault();
        e.stopImmediatePropagation();
        if (key === 'Enter') this.#sendReason();
        else this.#giveUp();
      },
      true,
    );
    this.#reasonSlot = h(
      'div',
      { class: 'an-reason', hidden: true },
      this.#reason.element,
      button(t('Add'), () => this.#sendReason(), { kind: 'primary' }),
    );
    const row = h('div', { class: 'an-row' }, this.#replay, this.#pool, this.#reasonSlot, this.#progress, this.#now);
    roving(row, '.an-row > vscode-button');
    this.element = h('div', { class: 'an-verify' }, row, this.#trouble, this.#list);
  }

  update(m: VerifyModel | undefined): void {
    if (m?.target.rollout !== this.#model?.target.rollout || m?.target.run !== this.#model?.target.run) {
      this.#adding = undefined;
      this.#clear();
    }
    this.#model = m;
    if (m && this.#pooled?.run !== m.target.run) void this.#askPool(m.target.run);
    this.#draw(false);
  }
  /** Push of the host: a replay goes on, ours or another window's; `undefined`: it does no more. */
  progress(t: Target, p: Omit<ReplayProgress, 'abort'> | undefined): void {
    const key = keyOf(t),
      old = this.#inProgress.get(key);
    if (p) this.#inProgress.set(key, { ...p, abort: old?.abort });
    else if (!old?.abort) this.#inProgress.delete(key);
    this.#draw(true);
  }
  async run(): Promise<void> {
    const m = this.#model;
    if (!m || m.locked) return;
    if (!m.saved) {
      this.#io.announce(t('Not saved yet: a replay uses what is on disk.'));
      return;
    }
    if (this.#current) return;
    this.#io.announce(t('Replay started'));
    await this.follow(m.target, m.view.trajectory.steps.length);
  }
  /** Waits for a replay to end; one that began before this page was built goes on. */
  async follow(target: Target, of = 0): Promise<void> {
    const key = keyOf(target),
      abort = new AbortController();
    this.#troubles.delete(key);
    this.#inProgress.set(key, { abort, step: 0, of });
    this.#draw(true);
    try {
      const after = await this.#io.request('annotation/replay', target, abort.signal),
        last = after.replays.at(-1);
      this.#io.announce(last ? t('Replayed: {0}', verdictWords(last)) : t('Replayed'));
      this.#pooled = undefined;
    } catch (e) {
      const error = this.#io.error(e);
      if (error.kind === 'cancelled') this.#io.announce(t('Replay cancelled'));
      else {
        this.#troubles.set(key, error);
        this.#io.announce(t('Replay failed: {0}', error.message));
      }
    }
    this.#inProgress.delete(key);
    this.#io.replayed(target);
    this.#draw(true);
  }
  cancel(): void {
    this.#current?.abort?.abort();
  }
  /** A verified success joins at once; anything else needs a reason. */
  toPool(): void {
    const m = this.#model;
    if (!m || m.locked || this.#inPool(m.target.rollout)) return;
    const good = this.#best(m);
    if (good !== undefined) {
      void this.#add(good);
      return;
    }
    this.#adding = m.target.rollout;
    this.#draw(true);
    this.#reason.focus();
  }

  get #current(): ReplayProgress | undefined {
    return this.#model && this.#inProgress.get(keyOf(this.#model.target));
  }
  #inPool(rollout: string): boolean {
    return this.#pooled?.run === this.#model?.target.run && (this.#pooled?.rollouts.has(rollout) ?? false);
  }
  /** The rollout whose success the verifier saw: the trajectory as recorded, or the replay of the shown revision. */
  #best(m: VerifyModel): string | undefined {
    const edited = m.view.changed.length + m.view.deleted.length + m.view.parts.length > 0;
    if (!edited && m.recorded.row.outcome === 'success') return m.target.rollout;
    return [...m.view.replays]
      .reverse()
      .find((r) => r.revision === m.view.revision && r.outcome === 'success' && r.rollout !== undefined)?.rollout;
  }
  #sendReason(): void {
    const override = this.#reason.value.trim();
    if (this.#adding === undefined) return;
    if (!override) {
      this.#reason.complain(t('Adding an unverified trajectory requires a reason.'));
      this.#reason.focus();
      return;
    }
    void this.#add(this.#adding, override);
  }
  #giveUp(): void {
    this.#adding = undefined;
    this.#clear();
    this.#draw(true);
    this.#io.left();
  }
  #clear(): void {
    this.#reason.revert();
    this.#reason.set('');
  }
  async #add(rollout: string, override?: string): Promise<void> {
    const m = this.#model;
    if (!m) return;
    const key = keyOf(m.target);
    this.#troubles.delete(key);
    try {
      this.#take(
        m.target.run,
        await this.#io.request('pool/add', {
          run: m.target.run,
          rollout,
          override,
        }),
      );
      this.#adding = undefined;
      this.#clear();
      this.#io.announce(t('In the experience pool'));
      this.#io.left();
    } catch (e) {
      this.#troubles.set(key, this.#io.error(e));
      // The daemon knows better whether it was verified: ask for the reason.
      if (override === undefined) this.#adding = rollout;
    }
    this.#draw(true);
  }
  async #askPool(run: string): Promise<void> {
    if (this.#asking === run) return;
    this.#asking = run;
    // Without an answer the button stays: adding again changes nothing.
    try {
      this.#take(run, await this.#io.request('pool/list', { run }));
    } catch {
      this.#pooled = { run, rollouts: new Set() };
    }
    this.#asking = '';
    this.#draw(true);
  }
  #take(run: string, p: PoolView): void {
    this.#pooled = { run, rollouts: new Set(p.families.flatMap((f) => f.entries.map((e) => e.rollout))) };
  }

  #draw(again: boolean): void {
    const m = this.#model;
    if (!m) return;
    const going = this.#current,
      trouble = this.#troubles.get(keyOf(m.target)),
      best = this.#best(m);
    this.#replay.hidden = going !== undefined;
    set(this.#replay, { disabled: m.locked || !m.saved });
    this.#drawPool(m, best);
    this.#reasonSlot.hidden = this.#adding === undefined;
    this.#drawProgress(going);
    const key = JSON.stringify([m.target, m.view.replays, m.view.revision, trouble, best]);
    if (!again && key === this.#drawn) return;
    this.#drawn = key;
    replace(this.#trouble, trouble ? [icon('warning'), ` ${trouble.message} ${trouble.remedy}`] : []);
    const newest = [...m.view.replays].reverse().find((r) => r.revision === m.view.revision);
    replace(
      this.#now,
      going
        ? []
        : newest
          ? summary(newest)
          : m.view.replays.length
            ? h('span', { class: 'ds-quiet' }, t('This revision was not replayed yet.'))
            : [],
    );
    this.#drawReplays(m.view.replays);
  }
  #drawPool(m: VerifyModel, best: string | undefined): void {
    const inPool = this.#inPool(m.target.rollout) || (best !== undefined && this.#inPool(best));
    this.#pool.hidden = this.#adding !== undefined;
    const poolWords = inPool ? t('In the pool') : best === undefined ? t('Add to pool…') : t('Add to pool');
    if (this.#pool.textContent !== poolWords) replace(this.#pool, slotted('database'), poolWords);
    set(this.#pool, { disabled: m.locked || inPool });
  }
  #drawProgress(going: ReplayProgress | undefined): void {
    this.#progress.hidden = going === undefined;
    if (going) {
      text(
        this.#words,
        going.of && going.step
          ? t('Replaying step {0} of {1}', going.step, going.of)
          : t('Replaying: a fresh desktop is set up'),
      );
      set(this.#bar, { max: Math.max(1, going.of), value: going.step });
      this.#watch.hidden = going.desktop === undefined;
      this.#cancel.hidden = going.abort === undefined;
    }
  }
  #drawReplays(replays: readonly Replay[]): void {
    const open = this.#list.querySelector('details')?.open ?? false;
    replace(
      this.#list,
      replays.length
        ? h(
            'details',
            { open },
            h('summary', null, t('Replays ({0})', replays.length)),
            h(
              'ol',
              { reversed: true },
              [...replays].reverse().map((r) => this.#replayed(r)),
            ),
          )
        : [],
    );
  }
  #replayed(r: Replay): HTMLElement {
    const { rollout } = r;
    return h(
      'li',
      { class: 'an-replay' },
      h(
        'div',
        { class: 'an-row' },
        h('strong', null, r.revision === 0 ? t('As recorded') : t('Revision {0}', r.revision)),
        summary(r),
        rollout === undefined
          ? undefined
          : h(
              'button',
              {
                type: 'button',
                class: 'ds-link',
                title: t('Open {0}', rollout),
                on: { click: () => this.#io.open(rollout) },
              },
              t('Open the recorded replay'),
            ),
      ),
      r.error ? h('p', { class: 'ds-quiet' }, r.error.remedy) : undefined,
      r.report?.checks.length ? checksTable(r.report) : undefined,
    );
  }
}
const passed = (r: Replay): string =>
  r.report?.checks.length
    ? t('{0} of {1} checks passed', r.report.checks.filter((c) => c.score >= 1).length, r.report.checks.length)
    : '';
function verdictWords(r: Replay): string {
  return [r.outcome ? outcomeLower[r.outcome] : t('no verdict'), passed(r), poolWords(r)].filter(Boolean).join(', ');
}
const poolWords = (r: Replay): string =>
  r.pooled ? t('in the experience pool') : r.why ? t('not pooled: {0}', r.why) : '';
function summary(r: Replay): Child {
  return [
    r.outcome ? outcomeBadge(r.outcome) : undefined,
    h(
      'span',
      null,
      [r.error?.message ?? '', r.reward === undefined ? '' : t('reward {0}', num(r.reward, 3)), passed(r), poolWords(r)]
        .filter(Boolean)
        .join(' · '),
    ),
  ];
}
/** An icon before a button's words. */
function slotted(name: string): HTMLElement {
  const i = icon(name);
  i.slot = 'start';
  return i;
}
