/** A request to take a rollout over: carried out at once, or as soon as a rollout allows it. */
import { t } from '../ui/words.js';
import type { Controller } from './controller.js';
import { takesOverSoon, takeOverRefusal } from './session.js';
import type { State } from './state.js';

export type TakeOverMode = 'human' | 'step';
export interface TakeOverOptions {
  readonly control: Controller;
  state(): State;
  refused(why: string): void;
  /** The picture gets the focus. */
  focus(): void;
  changed(): void;
}

export class TakeOver {
  readonly #o: TakeOverOptions;
  /** `asked`: the rollout that refused already. */
  #wish: { readonly mode: TakeOverMode; readonly asked?: string } | undefined;

  constructor(o: TakeOverOptions) {
    this.#o = o;
  }
  get wish(): TakeOverMode | undefined {
    return this.#wish?.mode;
  }

  /** Takes over at once, or as soon as a rollout allows it; a second press cancels the request. */
  toggle(mode: TakeOverMode): void {
    if (this.#o.control.taking) {
      this.#o.control.callOff();
      this.#wish = undefined;
      return;
    }
    if (this.#wish?.mode !== mode && !takesOverSoon(this.#o.state())) {
      this.#takeNow(mode);
      return;
    }
    this.#wish = this.#wish?.mode === mode ? undefined : { mode };
    if (this.#wish)
      this.#o.refused(
        [t('You get control as soon as a rollout can be taken over.'), takeOverRefusal(this.#o.state())]
          .filter(Boolean)
          .join(' '),
      );
    else this.#o.control.dismiss();
  }
  /** A rollout that refuses, as one of an evaluation does, is asked once; the request stays for the next. */
  retry(): void {
    const w = this.#wish,
      rollout = this.#o.state().row?.rollout;
    if (this.#o.control.session !== undefined) this.#wish = undefined;
    else if (
      w &&
      rollout !== undefined &&
      w.asked !== rollout &&
      this.#o.control.asking === undefined &&
      takeOverRefusal(this.#o.state()) === undefined
    ) {
      this.#wish = { mode: w.mode, asked: rollout };
      this.#takeNow(w.mode);
    }
  }
  #takeNow(mode: TakeOverMode): void {
    const asked = this.#o.state().row?.rollout;
    void this.#o.control.takeOver(this.#o.state().desktop, mode).then((how) => {
      if (how === 'taken') this.#wish = undefined;
      // The next one may be there already.
      else if (how === 'later') {
        this.#wish = { mode, asked };
        this.retry();
      }
      if (document.hasFocus() && (document.activeElement === document.body || document.activeElement === null))
        this.#o.focus();
      this.#o.changed();
    });
  }
}
