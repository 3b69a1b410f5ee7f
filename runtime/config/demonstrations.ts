import type { RunConfig } from './schema.js';

/** Desktops with accessibility on, at most: four make the demonstrations in seconds. */
const DEMO_DESKTOPS = 4;

/** How many make demonstrations at once, beside the desktops of rollouts. */
export const demoDesktops = ({ count }: RunConfig['desktops']): number => Math.min(DEMO_DESKTOPS, count);

/** Only the built-in suite has scripts that show how its tasks are solved. */
export const makesDemonstrations = ({ tasks, warmStart }: RunConfig): boolean =>
  tasks.suite === 'desk' && warmStart.demonstrations > 0;
