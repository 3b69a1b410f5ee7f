/** Options and events of the utilisation lanes. */
import type { Painter } from './chartPainter.js';
import type { Window } from './lanesMath.js';

export interface LanesOptions {
  readonly painter: Painter;
  /** Time tick and moment in the run's own clock; `origin` is its 0. */
  readonly tick: (ms: number, step: number) => string;
  readonly moment: (ms: number) => string;
  /** The window changed, by a person or by following. */
  readonly onWindow: (w: Window, widthPx: number, by: 'person' | 'live') => void;
  readonly onOpen: (rollout: string) => void;
  readonly onFollow: (on: boolean) => void;
}
