/** A colour and a pattern for each activity of the lanes. Pure. */
import type { Activity } from '../../runtime/protocol/types.js';
import type { Hue } from './chartSpec.js';
import { t } from './words.js';

export type Pattern = 'solid' | 'slash' | 'backslash' | 'dots' | 'vertical' | 'horizontal' | 'cross' | 'checks';
export const activityLook: Readonly<
  Record<
    Exclude<Activity, 'idle'>,
    { readonly word: string; readonly hue: Hue; readonly pattern: Pattern; readonly says: string }
  >
> = {
  reset: { word: t('reset'), hue: 'plain', pattern: 'slash', says: t('the desktop is being reset') },
  setup: { word: t('setup'), hue: 'plain', pattern: 'horizontal', says: t('the task is prepared on the desktop') },
  observe: { word: t('observe'), hue: 'blue', pattern: 'dots', says: t('a screenshot is taken') },
  decide: { word: t('decide'), hue: 'purple', pattern: 'solid', says: t('the policy chooses the next action') },
  act: { word: t('act'), hue: 'green', pattern: 'solid', says: t('the action is carried out') },
  settle: { word: t('settle'), hue: 'blue', pattern: 'backslash', says: t('waiting until the screen is at rest') },
  verify: { word: t('verify'), hue: 'yellow', pattern: 'vertical', says: t('the verifier judges the outcome') },
  update: { word: t('update'), hue: 'green', pattern: 'cross', says: t('the trainer updates the policy') },
  imitate: { word: t('imitate'), hue: 'blue', pattern: 'cross', says: t('the trainer learns from demonstrations') },
  sync: { word: t('sync'), hue: 'orange', pattern: 'checks', says: t('a replica takes new weights') },
};
