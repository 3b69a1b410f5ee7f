/** A person's hands on the picture: pointer and keyboard of the desktop, and the Enter that answers a proposal. */
import type { Announcer } from '../ui/commands.js';
import { t } from '../ui/words.js';
import type { Controller } from './controller.js';
import type { Picture } from './picture.js';
import { Surface } from './surface.js';

const hasKeyboard = t('The desktop has the keyboard. Press and release Control and Alt together to take it back.');

export interface HandsOptions {
  readonly picture: Picture;
  readonly control: Controller;
  readonly spoken: Announcer;
  readonly changed: () => void;
}

export class Hands {
  readonly surface: Surface;
  readonly #o: HandsOptions;
  #pressed: Pick<KeyboardEvent, 'timeStamp' | 'repeat'> = { timeStamp: 0, repeat: false };

  constructor(o: HandsOptions) {
    this.#o = o;
    const { picture, control, spoken } = o;
    this.surface = new Surface(picture.element, {
      place: () => picture.place(),
      push: (e) => control.input(e),
      flush: () => control.flush(),
      hover: () => control.state?.mode === 'human',
      captured: (on) => {
        picture.element.classList.toggle('captured', on);
        if (on) spoken.say(hasKeyboard);
        o.changed();
      },
      key: (e) => this.#enter(e),
    });
    this.#listen();
  }
  #listen(): void {
    const { picture, control } = this.#o;
    addEventListener(
      'keydown',
      (e) => {
        this.#pressed = e;
      },
      true,
    );
    picture.element.addEventListener('keydown', (e) => {
      if (
        e.target === picture.element &&
        e.key === 'Enter' &&
        !e.repeat &&
        control.mayAct &&
        control.state?.mode === 'human'
      ) {
        e.preventDefault();
        this.surface.capture();
      }
    });
  }
  capture(): void {
    if (this.#o.control.mayAct) this.surface.capture();
  }

  /**
   * Enter while the desktop has the keyboard: in step mode it answers the proposal, unless something else is being
   * done.
   */
  #enter(e: KeyboardEvent): boolean {
    const c = this.#o.control;
    if (
      e.key !== 'Enter' ||
      c.state?.mode !== 'step' ||
      c.overriding ||
      e.ctrlKey ||
      e.altKey ||
      e.shiftKey ||
      e.metaKey
    )
      return false;
    this.accept();
    return true;
  }
  /**
   * An Enter that comes too soon, or too late for the last proposal, accepts nothing. It counts when it was pressed,
   * not when the page got to it.
   */
  accept(): void {
    const { control, spoken } = this.#o;
    if (!this.#pressed.repeat && !control.accept(this.#pressed.timeStamp) && control.proposal.state === 'open')
      spoken.say(t('The proposal is new. Look at it, then press Enter.'));
  }
}
