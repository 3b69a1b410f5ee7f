/** How a state of a control session is said. Pure. */
import type { Words } from './state.js';

export interface SessionWords extends Words {
  readonly tone: 'good' | 'bad' | 'plain';
}
export const words = (
  icon: string,
  word: string,
  says: string,
  tone: SessionWords['tone'] = 'plain',
  still = false,
): SessionWords => ({ icon, word, says, tone, still });
