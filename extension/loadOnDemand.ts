import type * as OnDemand from './commands/onDemand.js';

/** The commands, with what they load: when the first of them is used. */
export const onDemand = (): Promise<typeof OnDemand> => import('./commands/onDemand.js');
