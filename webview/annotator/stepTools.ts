/**
 * The tools for the selected step: marks, deleting and restoring, trimming and splitting, its thought, and what its
 * actions typed or pressed.
 */
import type { AnnotationOp, AnnotationView, StepMark, StepView } from '../../runtime/protocol/types.js';
import { actionIcon, inTurn, type Action } from '../ui/actions.js';
import { h, icon, replace, set, text } from '../ui/dom.js';
import { DraftField } from '../ui/draftField.js';
import { markShapes, markWords } from '../ui/notes.js';
import { button, setPressed } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import { fieldOf, pointsOf } from './actionFields.js';
import { stepMarks } from './apply.js';

export interface StepToolsModel {
  readonly step: StepView;
  readonly recorded?: StepView;
  /** Steps on show, deleted ones among them. */
  readonly steps: readonly StepView[];
  readonly view: AnnotationView;
  readonly locked: boolean;
}
export interface StepToolsActions {
  edit(ops: readonly AnnotationOp[], words: string): void;
  draft(field: string, op: AnnotationOp | undefined): void;
  left(): void;
  announce(words: string): void;
  /** Starts moving the point with the keyboard. */
  move(): void;
}
export const markKeys: Readonly<Record<StepMark, string>> = { key: 'k', redundant: 'r', wrong: 'w' };
const markNames: Readonly<Record<StepMark, string>> = { key: t('Key'), redundant: t('Redundant'), wrong: t('Wrong') };
const markTitles: Readonly<Record<StepMark, string>> = {
  key: t('Decisive step'),
  redundant: t('Not needed to do the task'),
  wrong: t('A mistake'),
};

export class StepTools {
  readonly element: HTMLElement;
  readonly #do: StepToolsActions;
  readonly #marks = new Map<StepMark, HTMLElement>();
  readonly #delete: HTMLElement;
  readonly #before: HTMLElement;
  readonly #after: HTMLElement;
  readonly #split: HTMLElement;
  readonly #thought: DraftField;
  readonly #asRecorded = h('p', { class: 'an-recorded' });
  readonly #actions = h('div', { class: 'an-actions' });
  readonly #fields = new Map<number, DraftField>();
  #model: StepToolsModel | undefined;
  #shape = '';

  constructor(actions: StepToolsActions) {
    this.#do = actions;
    for (const m of stepMarks)
      this.#marks.set(
        m,
        button(markNames[m], () => this.mark(m), {
          icon: markShapes[m].icon,
          pressed: false,
          title: `${markTitles[m]} (${markKeys[m]})`,
          keys: markKeys[m],
        }),
      );
    this.#delete = button(t('Delete'), () => this.toggleDeleted(), {
      title: t('Leave this step out; it stays here and can be restored (x)'),
      keys: 'x',
    });
    this.#before = button(t('All before'), () => this.trim('before'), {
      title: t('Trim: leave out all steps before this one (<)'),
      keys: '<',
    });
    this.#after = button(t('All after'), () => this.trim('after'), {
      title: t('Trim: leave out all steps after this one (>)'),
      keys: '>',
    });
    this.#split = button(t('Split'), () => this.split(), {
      title: t('Start another trajectory at this step (/)'),
      keys: '/',
    });
    this.#thought = new DraftField({
      label: t('Thought'),
      many: true,
      rows: 3,
      placeholder: t('What was thought before acting'),
      typed: (thought) => this.#draft('thought', thought === undefined ? undefined : this.#thoughtOp(thought)),
      commit: (thought) => actions.edit([this.#thoughtOp(thought)], t('Thought changed')),
      left: actions.left,
    });
    this.element = h(
      'section',
      { class: 'an-step', 'aria-label': t('Annotate this step'), hidden: true },
      h('div', { class: 'an-buttons', role: 'group', 'aria-label': t('Mark this step') }, [...this.#marks.values()]),
      h(
        'div',
        { class: 'an-buttons', role: 'group', 'aria-label': t('Leave steps out') },
        this.#delete,
        this.#before,
        this.#after,
        this.#split,
      ),
      this.#thought.element,
      this.#actions,
      this.#asRecorded,
    );
  }

  update(m: StepToolsModel | undefined): void {
    this.element.hidden = !m;
    if (!m) {
      this.flush();
      this.#model = undefined;
      return;
    }
    const old = this.#model,
      another = old?.step.index !== m.step.index || old.view.rollout !== m.view.rollout;
    // Text typed for the step before belongs to that one.
    if (another) {
      this.flush();
      this.#shape = '';
    }
    this.#model = m;
    const { step, view, locked } = m,
      deleted = view.deleted.includes(step.index),
      off = locked || deleted,
      left = m.steps.filter((s) => !view.deleted.includes(s.index));
    for (const [k, b] of this.#marks) {
      setPressed(b, view.marks[step.index]?.includes(k) ?? false);
      set(b, { disabled: off });
    }
    text(this.#delete, deleted ? t('Restore') : t('Delete'));
    set(this.#delete, {
      disabled: locked || (!deleted && left.length < 2),
      title: deleted ? t('Restore this step (x)') : t('Leave this step out; it stays here and can be restored (x)'),
    });
    set(this.#before, { disabled: off || !left.some((s) => s.index < step.index) });
    set(this.#after, { disabled: off || !left.some((s) => s.index > step.index) });
    set(this.#split, { disabled: off || !left.some((s) => s.index < step.index) });
    this.#thought.set(step.thought ?? '');
    this.#thought.disabled = off;
    this.#drawActions(m, off);
    const was = m.recorded,
      edited = view.changed.includes(step.index) && was;
    replace(
      this.#asRecorded,
      edited
        ? [
            icon('history'),
            h(
              'span',
              null,
              [
                t('Recorded:'),
                (was.thought ?? '') === (step.thought ?? '') ? '' : `“${was.thought ?? t('no thought')}”`,
                inTurn(was.actions),
              ]
                .filter(Boolean)
                .join(' '),
            ),
          ]
        : [],
    );
    this.#asRecorded.hidden = !edited;
  }
  flush(): void {
    this.#thought.flush();
    for (const f of this.#fields.values()) f.flush();
  }

  mark(mark: StepMark): void {
    const m = this.#ready();
    if (!m) return;
    if (m.view.deleted.includes(m.step.index)) {
      this.#do.announce(t('This step is deleted: restore it first.'));
      return;
    }
    const on = !(m.view.marks[m.step.index]?.includes(mark) ?? false);
    this.#do.edit(
      [{ op: 'mark', step: m.step.index, mark, on }],
      on
        ? t('Step {0} marked {1}', m.step.index + 1, markWords[mark])
        : t('Step {0} no longer marked {1}', m.step.index + 1, markWords[mark]),
    );
  }
  toggleDeleted(): void {
    const m = this.#ready();
    if (!m) return;
    const { index } = m.step;
    if (m.view.deleted.includes(index)) {
      this.#do.edit([{ op: 'restore', steps: [index] }], t('Step {0} restored', index + 1));
      return;
    }
    if (this.#left(m).length < 2) {
      this.#do.announce(t('The last step stays: a trajectory has at least one.'));
      return;
    }
    this.#do.edit([{ op: 'delete', steps: [index] }], t('Step {0} deleted', index + 1));
  }
  trim(side: 'before' | 'after'): void {
    const m = this.#ready();
    if (!m || m.view.deleted.includes(m.step.index)) return;
    const steps = this.#left(m)
      .map((s) => s.index)
      .filter((i) => (side === 'before' ? i < m.step.index : i > m.step.index));
    if (steps.length)
      this.#do.edit(
        [{ op: 'delete', steps }],
        side === 'before'
          ? t('{0} deleted before step {1}', steps.length, m.step.index + 1)
          : t('{0} deleted after step {1}', steps.length, m.step.index + 1),
      );
    else this.#do.announce(side === 'before' ? t('Nothing before this step') : t('Nothing after this step'));
  }
  split(): void {
    const m = this.#ready();
    if (!m || m.view.deleted.includes(m.step.index)) return;
    if (this.#left(m).some((s) => s.index < m.step.index))
      this.#do.edit([{ op: 'split', step: m.step.index }], t('Split before step {0}', m.step.index + 1));
    else this.#do.announce(t('This is the first step: there is nothing to split off.'));
  }
  focusThought(): void {
    if (this.#ready()) this.#thought.focus();
  }
  /** The first field of an action, else its point. */
  focusAction(): void {
    if (!this.#ready()) return;
    const first = [...this.#fields.values()][0];
    if (first) first.focus();
    else this.#do.move();
  }

  #left(m: StepToolsModel): StepView[] {
    return m.steps.filter((s) => !m.view.deleted.includes(s.index));
  }
  #ready(): StepToolsModel | undefined {
    const m = this.#model;
    return m && !m.locked ? m : undefined;
  }
  #thoughtOp(t: string): AnnotationOp {
    const m = this.#model!;
    return { op: 'thought', step: m.step.index, text: t === (m.recorded?.thought ?? '') ? null : t };
  }
  #draft(field: string, op: AnnotationOp | undefined): void {
    this.#do.draft(`${field}:${this.#model!.step.index}`, op);
  }

  #drawActions(m: StepToolsModel, off: boolean): void {
    const { step } = m,
      shape = `${step.index}|${step.actions.map((a) => a.type).join()}`;
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#fields.clear();
      replace(
        this.#actions,
        step.actions.map((a, i) =>
          h('div', { class: 'an-action', data: { action: i } }, this.#actionField(step.index, a, i)?.element),
        ),
        pointsOf(step.actions).length ? h('p', { class: 'an-points' }) : undefined,
      );
    }
    step.actions.forEach((a, i) => {
      const f = this.#fields.get(i);
      if (f) {
        f.set(fieldOf(a)?.value ?? '');
        f.disabled = off;
      }
    });
    this.#drawPoints(step, off);
  }
  /** The field of an action that has one: what was typed, which keys, how far. */
  #actionField(index: number, a: Action, i: number): DraftField | undefined {
    const field = fieldOf(a);
    if (!field) return undefined;
    const op = (typed: string): AnnotationOp | undefined => {
      const now = this.#parse(i, typed);
      return typeof now === 'object' ? { op: 'action', step: index, action: i, value: now } : undefined;
    };
    const f = new DraftField({
      label: field.label,
      many: field.many,
      rows: a.type === 'type' ? 2 : 1,
      hint: field.hint,
      check: (typed) => {
        const now = this.#parse(i, typed);
        return typeof now === 'string' ? now : undefined;
      },
      typed: (typed) => this.#draft(`action.${i}`, typed === undefined ? undefined : op(typed)),
      commit: (typed) => {
        const o = op(typed);
        if (o) this.#do.edit([o], t('{0} changed', field.label));
      },
      left: this.#do.left,
    });
    this.#fields.set(i, f);
    return f;
  }
  /** Which points can be moved, and the button that moves them. */
  #drawPoints(step: StepView, off: boolean): void {
    const points = this.#actions.querySelector('.an-points'),
      first = step.actions.find((a) => pointsOf([a]).length);
    if (points && first)
      replace(
        points,
        icon(actionIcon(first)),
        h('span', null, inTurn(step.actions.filter((a) => pointsOf([a]).length))),
        off
          ? undefined
          : h(
              'button',
              {
                type: 'button',
                class: 'ds-link',
                title: t('Then the arrow keys move it, Shift by 10 pixels (a)'),
                on: { click: () => this.#do.move() },
              },
              pointsOf(step.actions).length > 1 ? t('Move its points') : t('Move the point'),
            ),
      );
  }
  #parse(i: number, typed: string): ReturnType<NonNullable<ReturnType<typeof fieldOf>>['parse']> {
    const a = this.#model?.step.actions[i],
      f = a && fieldOf(a);
    return f ? f.parse(typed) : t('This action no longer exists.');
  }
}
