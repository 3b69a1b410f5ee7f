/** The tools for the trajectory as a whole: its outcome, tags and note, undo and redo, and whether all is on disk. */
import type { AnnotationOp, AnnotationView, TrajectoryView } from '../../runtime/protocol/types.js';
import type { HostError } from '../protocol.js';
import { bannerView } from '../ui/banner.js';
import { h, icon, replace, set, text, type Child } from '../ui/dom.js';
import { DraftField } from '../ui/draftField.js';
import { TagField } from '../ui/tagField.js';
import { button, setPressed } from '../ui/toolkit.js';
import { outcomeLower } from '../inspector/header.js';
import { t } from '../ui/words.js';
import type { SaveState } from './outbox.js';

export interface TrajectoryToolsModel {
  readonly recorded: TrajectoryView;
  /** With the edits that wait. */
  readonly view?: AnnotationView;
  readonly saved: SaveState;
  /** Of a save, or of reading the annotations. */
  readonly error?: HostError;
  readonly revision: number;
  readonly elsewhere: number;
  readonly undo: boolean;
  readonly redo: boolean;
  readonly tags: readonly string[];
  /** Nothing can be edited: words. */
  readonly locked?: string;
  /** Not this trajectory at all. */
  readonly never?: string;
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
    for (const [v, words, title] of [
      [null, t('As verified'), t('What the verifier saved')],
      ['success', t('Success'), t('A person says: the task was done')],
      ['failure', t('Failure'), t('A person says: the task was not done')],
    ] as const)
      this.#verdicts.set(
        v,
        button(words, () => this.choose(v), { pressed: false, title }),
      );
    const outcome = (reason: string): AnnotationOp | undefined => {
      const value = this.#chosen ?? this.#model?.view?.outcome?.value;
      return value && reason.trim() ? { op: 'outcome', value, reason: reason.trim() } : undefined;
    };
    this.#reason = new DraftField({
      label: t('Reason for the corrected outcome'),
      bare: true,
      placeholder: t('Why? It is saved with its reason.'),
      check: (reason) => (reason.trim() ? undefined : t('Say why, then it is saved.')),
      typed: (reason) => actions.draft('outcome', reason === undefined ? undefined : outcome(reason)),
      commit: (reason) => {
        const op = outcome(reason);
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
    this.#reasonSlot = h('div', { class: 'an-reason' }, this.#reason.element);
    this.#tags = new TagField({
      add: (tag) => this.#retag([...this.#now, tag], t('Tagged {0}', tag)),
      remove: (tag) =>
        this.#retag(
          this.#now.filter((x) => x !== tag),
          t('Tag {0} removed', tag),
        ),
      left: actions.left,
    });
    this.#note = new DraftField({
      label: t('Note'),
      bare: true,
      many: true,
      rows: 1,
      placeholder: t('Note for whoever reads this next'),
      typed: (note) => actions.draft('note', note === undefined ? undefined : { op: 'note', text: note }),
      commit: (note) => actions.edit([{ op: 'note', text: note }], t('Note changed')),
      left: actions.left,
    });
    const row = (name: string, key: string, ...body: Child[]): HTMLElement =>
      h('div', { class: 'an-row' }, h('span', { class: 'an-name', title: t('Key {0}', key) }, name), body);
    this.#tools = h(
      'div',
      { class: 'an-tools' },
      row(
        t('Outcome'),
        'o',
        h('div', { class: 'ds-segment', role: 'group', 'aria-label': t('Outcome') }, [...this.#verdicts.values()]),
        this.#reasonSlot,
      ),
      row(t('Note'), 'j', this.#note.element),
      verify,
      row(t('Tags'), 'g', this.#tags.element),
    );
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

  update(m: TrajectoryToolsModel): void {
    const old = this.#model;
    if (old?.recorded.row.rollout !== m.recorded.row.rollout || (old.recorded.row !== m.recorded.row && m.never))
      this.#chosen = undefined;
    this.#model = m;
    this.#draw();
  }
  /** A verdict; with a reason to come unless it is the verifier's own. */
  choose(v: Verdict): void {
    const m = this.#model;
    if (!m?.view || m.locked || m.never) {
      this.#do.announce(m?.never ?? m?.locked ?? t('Nothing to correct yet'));
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
  /** In one key: the other verdict than the one that holds. */
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
    const off = m.never !== undefined || m.locked !== undefined || !m.view,
      verified = m.recorded.row.outcome,
      value = this.#chosen ?? m.view?.outcome?.value ?? null;
    this.#tools.hidden = m.never !== undefined || !m.view;
    this.#stateWords(m);
    for (const b of [this.#undo, this.#redo]) b.hidden = m.never !== undefined;
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
  #stateWords(m: TrajectoryToolsModel): void {
    const n = m.revision,
      at = n === 0 ? t('As recorded') : t('Saved, revision {0}', n);
    const [name, words, tone] =
      m.never !== undefined
        ? (['circle-slash', t('Not here'), ''] as const)
        : m.saved === 'failed' || m.error
          ? (['warning', t('Not saved'), 'bad'] as const)
          : m.saved === 'conflict'
            ? (['warning', t('Your edit waits'), 'bad'] as const)
            : m.saved === 'saving' || m.saved === 'waiting'
              ? (['sync codicon-modifier-spin', t('Saving…'), ''] as const)
              : !m.view
                ? (['loading codicon-modifier-spin', t('Reading the annotations…'), ''] as const)
                : ([n === 0 ? 'history' : 'check', at, ''] as const);
    const shown = m.error && !m.view && m.saved !== 'failed' ? t('Cannot be read') : words;
    if (this.#state.textContent !== shown) replace(this.#state, icon(name), h('span', { class: tone }, shown));
    const banner = m.never ?? m.locked,
      key = JSON.stringify([
        banner,
        m.saved === 'failed' || m.saved === 'conflict' ? m.saved : '',
        m.error,
        m.elsewhere,
        m.saved === 'conflict' ? n : 0,
      ]);
    if (this.#banners.dataset['key'] === key) return;
    this.#banners.dataset['key'] = key;
    const mine =
      m.saved === 'failed' || m.saved === 'conflict' || m.saved === 'waiting'
        ? button(t('Discard mine'), this.#do.discard)
        : undefined;
    replace(
      this.#banners,
      banner === undefined ? undefined : bannerView(m.never === undefined ? 'lock' : 'info', banner, 'info'),
      m.error
        ? bannerView(
            'warning',
            [
              m.error.message,
              m.error.remedy,
              m.saved === 'failed' || m.saved === 'waiting'
                ? t('What you did is kept here and sent again when the runtime answers.')
                : '',
            ]
              .filter(Boolean)
              .join(' '),
            'error',
            button(t('Try again'), this.#do.retry),
            mine,
          )
        : undefined,
      m.saved === 'conflict'
        ? bannerView(
            'git-merge',
            t(
              'Another window made revision {0}. Your edit is kept and not saved: put it on top of that revision, or discard it.',
              n,
            ),
            'warning',
            button(t('Put mine on top'), this.#do.rebase, { kind: 'primary' }),
            mine,
          )
        : undefined,
      m.elsewhere
        ? bannerView(
            'warning',
            m.elsewhere === 1
              ? t(
                  '1 edit of other trajectories is not saved yet. They are kept here and sent again when the runtime answers.',
                )
              : t(
                  '{0} edits of other trajectories are not saved yet. They are kept here and sent again when the runtime answers.',
                  m.elsewhere,
                ),
            'warning',
            button(t('Try again'), this.#do.retry),
          )
        : undefined,
    );
  }
}
