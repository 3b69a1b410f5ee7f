/** The fields above the desktop: the policy, the desktop and the task of a try. */
import { h, replace, text } from '../ui/dom.js';
import { button } from '../ui/toolkit.js';
import { t } from '../ui/words.js';
import {
  policyOf,
  policyOptions,
  taskOptions,
  taskWords,
  versionOptions,
  type Form,
  type Option,
  type State,
} from './state.js';

export interface FormActions {
  change(form: Partial<Form>): void;
  begin(mode: 'policy' | 'step'): void;
  cancel(): void;
  train(): void;
}
type Field = 'policy' | 'version' | 'family' | 'image' | 'choices';
const choices: readonly Option[] = [
  { value: 'likely', label: t('Most probable') },
  { value: 'sampled', label: t('Sampled') },
];

export class TryForm {
  readonly element: HTMLElement;
  readonly #selects: Readonly<Record<Field, HTMLSelectElement>>;
  readonly #seed = h('input', { type: 'text', inputmode: 'numeric', autocomplete: 'off', placeholder: t('any') });
  readonly #instruction = h('input', { type: 'text', autocomplete: 'off', maxlength: 4000 });
  readonly #labels: Readonly<Partial<Record<Field | 'seed', HTMLElement>>>;
  readonly #begin: HTMLElement;
  readonly #step: HTMLElement;
  readonly #cancel: HTMLElement;
  readonly #missing = h('p', { class: 'try-missing', role: 'alert' });
  readonly #drawn = new Map<Field, string>();

  constructor(form: Form, a: FormActions) {
    const select = (field: Field): HTMLSelectElement =>
      h('select', {
        on: { change: (e) => a.change({ [field]: (e.target as HTMLSelectElement).value } as Partial<Form>) },
      });
    this.#selects = {
      policy: select('policy'),
      version: select('version'),
      family: select('family'),
      image: select('image'),
      choices: select('choices'),
    };
    this.#seed.value = form.seed;
    this.#instruction.value = form.instruction;
    this.#seed.addEventListener('input', () => a.change({ seed: this.#seed.value }));
    this.#instruction.addEventListener('input', () => a.change({ instruction: this.#instruction.value }));
    this.#begin = button(t('Try'), () => a.begin('policy'), {
      kind: 'primary',
      icon: 'play',
      title: t('Start a desktop and let the policy act on it (Enter in the instruction)'),
    });
    this.#step = button(t('Step Through'), () => a.begin('step'), {
      icon: 'debug-step-over',
      title: t('The policy proposes each step and waits for your approval'),
    });
    this.#cancel = button(t('Cancel'), () => a.cancel(), { icon: 'close', title: t('Cancel start') });
    const field = (label: string, control: HTMLElement, wide = ''): HTMLElement =>
        h('label', { class: `try-field ${wide}` }, h('span', null, label), control),
      version = field(t('Version'), this.#selects.version),
      seed = field(t('Seed'), this.#seed, 'short');
    this.#labels = { version, seed };
    this.element = h(
      'form',
      {
        class: 'try-form',
        'aria-label': t('What to try'),
        on: {
          submit: (e) => e.preventDefault(),
          keydown: (e) => {
            if (e.key !== 'Enter' || e.target !== this.#instruction || e.isComposing) return;
            e.preventDefault();
            a.begin('policy');
          },
        },
      },
      field(t('Policy'), this.#selects.policy),
      version,
      field(t('Desktop'), this.#selects.image),
      field(t('Task'), this.#selects.family),
      seed,
      field(t('Choices'), this.#selects.choices),
      field(t('Instruction'), this.#instruction, 'wide'),
      h('div', { class: 'try-begin' }, this.#begin, this.#step, this.#cancel),
      this.#missing,
    );
  }

  /** `missing`: what keeps it from beginning, after somebody tried. */
  render(s: State, missing: string | undefined, busy: boolean): void {
    const policy = policyOf(s),
      versions = versionOptions(policy, s.facts?.evals ?? []),
      { form } = s;
    this.#options(
      'policy',
      s.policies ? policyOptions(s.policies) : [{ value: form.policy, label: s.error ? '–' : t('Loading…') }],
      form.policy,
    );
    this.#options('version', versions, form.version);
    this.#labels.version!.hidden = versions.length === 0;
    this.#options('family', taskOptions(s.facts?.tasks ?? []), form.family);
    this.#labels.seed!.hidden = form.family === '';
    this.#options(
      'image',
      [{ value: '', label: t('As in training') }, ...s.images.map((i) => ({ value: i.name, label: i.title }))],
      form.image,
    );
    this.#options('choices', choices, form.choices);
    if (this.#seed.value !== form.seed) this.#seed.value = form.seed;
    if (this.#instruction.value !== form.instruction) this.#instruction.value = form.instruction;
    this.#instruction.placeholder = instructionHint(s);
    const off = busy || s.starting || s.daemon !== 'ready' || s.policies?.length === 0;
    for (const e of [...Object.values(this.#selects), this.#seed, this.#instruction]) e.disabled = busy || s.starting;
    for (const b of [this.#begin, this.#step]) {
      b.hidden = s.starting;
      b.toggleAttribute('disabled', off);
    }
    this.#cancel.hidden = !s.starting;
    text(this.#missing, missing ?? '');
    this.#missing.hidden = missing === undefined;
  }
  focus(field: 'policy' | 'instruction' | 'seed'): void {
    (field === 'policy' ? this.#selects.policy : field === 'seed' ? this.#seed : this.#instruction).focus();
  }
  /** Written again only when they are others: an open list stays open. */
  #options(field: Field, options: readonly Option[], value: string): void {
    const select = this.#selects[field],
      key = JSON.stringify(options);
    if (this.#drawn.get(field) !== key) {
      this.#drawn.set(field, key);
      replace(
        select,
        options.map((o) => h('option', { value: o.value }, o.label)),
      );
    }
    select.value = options.some((o) => o.value === value) ? value : (options[0]?.value ?? '');
  }
}
/** A family's tasks are alike; which one it will be, its seed says. */
function instructionHint(s: State): string {
  if (s.form.family === '') return t('Enter an instruction or choose a task.');
  const example = taskWords(s);
  return example === undefined
    ? t('The instruction of the task')
    : t('The instruction of the task, for example: {0}', example);
}
