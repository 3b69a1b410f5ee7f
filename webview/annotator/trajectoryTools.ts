/** The tools for the trajectory as a whole: its outcome, tags and note, undo and redo, and whether all is on disk. */
import type { AnnotationOp, AnnotationView, TrajectoryView } from '../../runtime/protocol/types.js';
import type { HostError } from '../protocol.js';
import { bannerView } from '../ui/banner.js';
import { h, icon, replace, set, text, type Child } from '../ui/dom.js';
import { DraftField } from '../ui/draftField.js';
import { roving } from '../ui/roving.js';
import { TagField } from '../ui/tagField.js';
import { button, setPressed } from '../ui/toolkit.js';
import { outcomeLower } from '../inspector/header.js';
import { t } from '../ui/words.js';
import type { SaveState } from './outbox.js';

export interface TrajectoryToolsModel {
  readonly recorded: TrajectoryView;
  /** The annotations, with the edits that wait. */
  readonly view?: AnnotationView;
  readonly saved: SaveState;
  /** Error of a save, or of reading the annotations. */
  readonly error?: HostError;
  readonly revision: number;
  readonly elsewhere: number;
  readonly undo: boolean;
  readonly redo: boolean;
  readonly tags: readonly string[];
  /** Why nothing can be edited, in words. */
  readonly locked?: string;
  /** Why this trajectory cannot be edited at all. */
  readonly lockReason?: string;
}
export interface TrajectoryToolsActions {
  edit(ops: readonly AnnotationOp[], words: string): void;
  draft(field: string, op: AnnotationOp | undefined): void;
  undo(): void;
  redo(): void;
  retry(): void;
  rebase(): void;
  discard(): void;
  left(): void;
  open(rollout: string): void;
  announce(words: string): void;
}
type Verdict = 'success' | 'failure' | null;

export class TrajectoryTools {
  readonly element: HTMLElement;
  readonly #do: TrajectoryToolsActions;
  readonly #state = h('span', { class: 'an-state', role: 'status' });
  readonly #undo: HTMLElement;
  readonly #redo: HTMLElement;
  readonly #verdicts = new Map<Verdict, HTMLElement>();
  readonly #reason: DraftField;
  readonly #reasonSlot: HTMLElement;
  readonly #tags: TagField;
  readonly #note: DraftField;
  readonly #tools: HTMLElement;
  readonly #banners = h('div', { class: 'an-banners' });
  readonly #parts = h('div', { class: 'an-parts' });
  #model: TrajectoryToolsModel | undefined;
  /** Chosen, and waiting for its reason. */
  #chosen: Exclude<Verdict, null> | undefined;

  /** `verify`: the element of replays and pool. */
  constructor(actions: TrajectoryToolsActions, verify: HTMLElement) {
    this.#do = actions;
    this.#undo = button(t('Undo'), actions.undo, {
      kind: 'icon',
      icon: 'discard',
      title: t('Undo (Ctrl+Z)'),
      keys: 'Control+Z',
    });
    this.#redo = button(t('Redo'), actions.redo, {
      kind: 'icon',
      icon: 'redo',
      title: t('Redo (Ctrl+Shift+Z)'),
      keys: 'Control+Shift+Z',
    });
    this.#addVerdicts();
    this.#reason = this.#reasonField();
    this.#reasonSlot = h('div', { class: 'an-reason' }, this.#reason.element);
    this.#tags = this.#tagField();
    this.#note = this.#noteField();
    this.#tools = this.#rows(verify);
    this.element = h(
      'section',
      { class: 'an-bar', 'aria-label': t('Annotations'), hidden: true },
      h(
        'div',
        { class: 'an-head' },
        h('h2', null, t('Annotate')),
        this.#state,
        h('span', { class: 'ds-spring' }),
        this.#parts,
        this.#undo,
        this.#redo,
      ),
      this.#banners,
      this.#tools,
    );
  }

  /** Adds one button for each outcome that a person can choose. */
  #addVerdicts(): void {
    for (const [v, words, title] of [
      [null, t('As verified'), t('What the verifier saved')],
      ['success', t('Success'), t('A person says: the task was done')],
      ['failure', t('Failure'), t('A person says: the task was not done')],
    ] as const)
      this.#verdicts.set(
        v,
        button(words, () => this.choose(v), { pressed: false, title }),
      );
  }
  #outcomeOp(reason: string): AnnotationOp | undefined {
    const value = this.#chosen ?? this.#model?.view?.outcome?.value;
    return value && reason.trim() ? { op: 'outcome', value, reason: reason.trim() } : undefined;
  }
  #reasonField(): DraftField {
    const actions = this.#do;
    return new DraftField({
      label: t('Reason for the corrected outcome'),
      bare: true,
      placeholder: t('Enter a reason to save it.'),
      check: (reason) => (reason.trim() ? undefined : t('Enter a reason to save it.')),
      typed: (reason) => actions.draft('outcome', reason === undefined ? undefined : this.#outcomeOp(reason)),
      commit: (reason) => {
        const op = this.#outcomeOp(reason);
        this.#chosen = undefined;
        if (op?.op === 'outcome')
          actions.edit(
            [op],
            op.value === 'success' ? t('Outcome corrected to success') : t('Outcome corrected to failure'),
          );
      },
      left: () => {
        if (this.#chosen) {
          this.#chosen = undefined;
          this.#draw();
        }
        actions.left();
      },
    });
  }
  #tagField(): TagField {
    return new TagField({
      add: (tag) => this.#retag([...this.#now, tag], t('Tagged {0}', tag)),
      remove: (tag) =>
        this.#retag(
          this.#now.filter((x) => x !== tag),
          t('Tag {0} removed', tag),
        ),
      left: this.#do.left,
    });
  }
  #noteField(): DraftField {
    const actions = this.#do;
    return new DraftField({
      label: t('Note'),
      bare: true,
      many: true,
      rows: 1,
      placeholder: t('Note for the next reader'),
      typed: (note) => actions.draft('note', note === undefined ? undefined : { op: 'note', text: note }),
      commit: (note) => actions.edit([{ op: 'note', text: note }], t('Note changed')),
      left: actions.left,
    });
  }
  #rows(verify: HTMLElement): HTMLElement {
    const row = (name: string, key: string, ...body: Child[]): HTMLElement =>
        h('div', { class: 'an-row' }, h('span', { class: 'an-name', title: t('Key {0}', key) }, name), body),
      verdicts = h('div', { class: 'ds-segment', role: 'group', 'aria-label': t('Outcome') }, [
        ...this.#verdicts.values(),
      ]);
    roving(verdicts, 'vscode-button');
    return h(
      'div',
      { class: 'an-tools' },
      row(t('Outcome'), 'o', verdicts, this.#reasonSlot),
      row(t('Note'), 'j', this.#note.element),
      verify,
      row(t('Tags'), 'g', this.#tags.element),
    );
  }

  update(m: TrajectoryToolsModel): void {
    const old = this.#model;
    if (old?.recorded.row.rollout !== m.recorded.row.rollout || (old.recorded.row !== m.recorded.row && m.lockReason))
      this.#chosen = undefined;
    this.#model = m;
    this.#draw();
  }
  /** A verdict; with a reason to come unless it is the verifier's own. */
  choose(v: Verdict): void {
    const m = this.#model;
    if (!m?.view || m.locked || m.lockReason) {
      this.#do.announce(m?.lockReason ?? m?.locked ?? t('Nothing to correct yet'));
      return;
    }
    if (v === null) {
      this.#chosen = undefined;
      this.#reason.revert();
      if (m.view.outcome) this.#do.edit([{ op: 'outcome', value: null, reason: '' }], t('Outcome as verified'));
      this.#draw();
      return;
    }
    this.#chosen = v;
    this.#draw();
    this.#reason.focus();
  }
  /** Chooses the other verdict than the one that holds. */
  flip(): void {
    const m = this.#model,
      now = m?.view?.outcome?.value ?? m?.recorded.row.outcome;
    this.choose(now === 'success' ? 'failure' : 'success');
  }
  focusTags(): void {
    this.#tags.focus();
  }
  focusNote(): void {
    this.#note.focus();
  }
  flush(): void {
    this.#note.flush();
    if (this.#reason.value.trim()) this.#reason.flush();
  }

  get #now(): readonly string[] {
    return this.#model?.view?.tags ?? [];
  }
  #retag(tags: readonly string[], words: string): void {
    this.#do.edit([{ op: 'tags', tags }], words);
  }

  #draw(): void {
    const m = this.#model;
    if (!m) return;
    const off = m.lockReason !== undefined || m.locked !== undefined || !m.view,
      verified = m.recorded.row.outcome,
      value = this.#chosen ?? m.view?.outcome?.value ?? null;
    this.#tools.hidden = m.lockReason !== undefined || !m.view;
    this.#drawState(m);
    for (const b of [this.#undo, this.#redo]) b.hidden = m.lockReason !== undefined;
    set(this.#undo, { disabled: off || !m.undo });
    set(this.#redo, { disabled: off || !m.redo });
    for (const [v, b] of this.#verdicts) {
      setPressed(b, v === value);
      set(b, { disabled: off });
    }
    const asVerified = this.#verdicts.get(null)!,
      words = t('As verified: {0}', outcomeLower[verified]);
    if (asVerified.textContent !== words) text(asVerified, words);
    this.#reasonSlot.hidden = value === null;
    this.#reason.set(m.view?.outcome?.value === value ? (m.view?.outcome?.reason ?? '') : '');
    this.#reason.disabled = off;
    this.#tags.update(this.#now, m.tags, off);
    this.#note.set(m.view?.note ?? '');
    this.#note.disabled = off;
    const parts = m.view?.parts ?? [],
      key = parts.join('\n');
    if (this.#parts.dataset['key'] !== key) {
      this.#parts.dataset['key'] = key;
      replace(
        this.#parts,
        parts.length
          ? [
              h('span', { class: 'ds-quiet' }, t('Split:'), ' '),
              parts.map((p) =>
                h(
                  'button',
                  { type: 'button', class: 'ds-link', title: t('Open {0}', p), on: { click: () => this.#do.open(p) } },
                  p.split('/').slice(-2).join('/'),
                ),
              ),
            ]
          : [],
      );
    }
  }
  #drawState(m: TrajectoryToolsModel): void {
    const w = stateWords(m);
    if (this.#state.textContent !== w.words) replace(this.#state, icon(w.icon), h('span', { class: w.tone }, w.words));
    const unsaved = m.saved === 'failed' || m.saved === 'conflict' ? m.saved : '',
      key = JSON.stringify([
        m.lockReason ?? m.locked,
        unsaved,
        m.error,
        m.elsewhere,
        m.saved === 'conflict' ? m.revision : 0,
      ]);
    if (this.#banners.dataset['key'] === key) return;
    this.#banners.dataset['key'] = key;
    replace(this.#banners, lockedBanner(m), this.#errorBanner(m), this.#conflictBanner(m), this.#elsewhereBanner(m));
  }
  #discardButton(m: TrajectoryToolsModel): HTMLElement | undefined {
    return m.saved === 'failed' || m.saved === 'conflict' || m.saved === 'waiting'
      ? button(t('Discard my edit'), this.#do.discard)
      : undefined;
  }
  #errorBanner(m: TrajectoryToolsModel): HTMLElement | undefined {
    if (!m.error) return undefined;
    const kept =
      m.saved === 'failed' || m.saved === 'waiting'
        ? t('What you did is kept here and sent again when the runtime answers.')
        : '';
    return bannerView(
      'warning',
      [m.error.message, m.error.remedy, kept].filter(Boolean).join(' '),
      'error',
      button(t('Try again'), this.#do.retry),
      this.#discardButton(m),
    );
  }
  #conflictBanner(m: TrajectoryToolsModel): HTMLElement | undefined {
    if (m.saved !== 'conflict') return undefined;
    return bannerView(
      'git-merge',
      t(
        'Another window made revision {0}. Your edit is kept but not saved: apply it on top of that revision, or discard it.',
        m.revision,
      ),
      'warning',
      button(t('Apply my edit on top'), this.#do.rebase, { kind: 'primary' }),
      this.#discardButton(m),
    );
  }
  #elsewhereBanner(m: TrajectoryToolsModel): HTMLElement | undefined {
    if (!m.elsewhere) return undefined;
    return bannerView(
      'warning',
      m.elsewhere === 1
        ? t('1 edit of another trajectory is not saved yet. It is kept here and sent again when the runtime answers.')
        : t(
            '{0} edits of other trajectories are not saved yet. They are kept here and sent again when the runtime answers.',
            m.elsewhere,
          ),
      'warning',
      button(t('Try again'), this.#do.retry),
    );
  }
}
function lockedBanner(m: TrajectoryToolsModel): HTMLElement | undefined {
  const words = m.lockReason ?? m.locked;
  return words === undefined ? undefined : bannerView(m.lockReason === undefined ? 'lock' : 'info', words, 'info');
}
/** Whether everything is on disk: icon, words and tone. */
function stateWords(m: TrajectoryToolsModel): { readonly icon: string; readonly words: string; readonly tone: string } {
  const { saved } = m;
  if (m.error && !m.view && saved !== 'failed')
    return m.lockReason === undefined
      ? { icon: 'warning', words: t('Cannot be read'), tone: 'bad' }
      : { icon: 'circle-slash', words: t('Cannot be read'), tone: '' };
  if (m.lockReason !== undefined) return { icon: 'circle-slash', words: t('Not available here'), tone: '' };
  if (saved === 'failed' || m.error) return { icon: 'warning', words: t('Not saved'), tone: 'bad' };
  if (saved === 'conflict') return { icon: 'warning', words: t('Your edit is pending'), tone: 'bad' };
  if (saved === 'saving' || saved === 'waiting')
    return { icon: 'sync codicon-modifier-spin', words: t('Saving…'), tone: '' };
  if (!m.view) return { icon: 'loading codicon-modifier-spin', words: t('Loading annotations…'), tone: '' };
  return m.revision === 0
    ? { icon: 'history', words: t('As recorded'), tone: '' }
    : { icon: 'check', words: t('Saved, revision {0}', m.revision), tone: '' };
}
