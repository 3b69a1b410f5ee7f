import { random } from '../domain/index.js';

/**
 * Which tasks go to the training part: whole tasks in a seeded order until their trajectories reach the share, so that
 * no task is in both parts. With two tasks or more neither part is empty.
 */
export function trainTasks(perTask: ReadonlyMap<string, number>, share: number, seed: number): ReadonlySet<string> {
  const order = random(`split/${seed}`).shuffle([...perTask.keys()].sort()),
    total = [...perTask.values()].reduce((a, b) => a + b, 0),
    chosen = new Set<string>();
  let have = 0;
  for (const task of order) {
    const n = perTask.get(task)!;
    // A task goes in while that brings the share nearer.
    if (chosen.size > 0 && Math.abs(have + n - share * total) > Math.abs(have - share * total)) continue;
    if (order.length > 1 && chosen.size === order.length - 1) break;
    chosen.add(task);
    have += n;
  }
  return chosen;
}
