import type * as OnDemand from './commands/onDemand.js';

/** Loads the commands' code when the first of them is used. */
export const onDemand = (): Promise<typeof OnDemand> => import('./commands/onDemand.js');
