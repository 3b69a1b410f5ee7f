import { h, replace } from './dom.js';
import { activities, makeFills, prepare } from './lanesInk.js';
import { activityLook } from './lanesLook.js';

/** The legend of the lanes' colours and patterns; drawn anew with the theme. */
export function fillLegend(list: HTMLElement): void {
  replace(
    list,
    activities.map((a) => {
      const sample = h('canvas', { 'aria-hidden': 'true' }),
        c = prepare(sample, 16, 12),
        fills = makeFills(c);
      c.fillStyle = fills[a];
      c.fillRect(0, 0, 16, 12);
      return h('li', { title: activityLook[a].says }, sample, activityLook[a].word);
    }),
  );
}
