/** Import and export as long work: a notification that counts trajectories and can be cancelled. */
import * as methods from '../../runtime/protocol/methods.js';
import { trajectoriesWords } from '../model/interchangeWords.js';
import type { StudioContext } from '../studioContext.js';
import { t } from '../words.js';
import { working } from './ask.js';

export const counted = <R>(s: StudioContext, title: string, work: (signal: AbortSignal) => Promise<R>): Promise<R> =>
  working(title, async (say, signal) => {
    let share = 0;
    const off = s.client.on(methods.interchangeProgress, (x) => {
      const now = x.of > 0 ? x.done / x.of : 0;
      say.report({
        message: x.of > 0 ? t('{0} of {1}', x.done, x.of) : trajectoriesWords(x.done),
        increment: 100 * Math.max(0, now - share),
      });
      share = Math.max(share, now);
    });
    try {
      return await work(signal);
    } finally {
      off();
    }
  });
