import { desktopContents } from '../../cluster/provide.js';
import type { RunConfig } from '../../config/index.js';
import { toRunError } from '../../domain/index.js';
import type { CheckRow } from '../../protocol/types.js';
import { startingPoint } from '../../run/checkpoints.js';
import { openTasks } from '../../tasks/open.js';
import { Table } from './table.js';

/** What a run opens before it has a folder: its tasks, and the policy that it starts from. What is wrong there ends it. */
export async function checkTasks(c: RunConfig): Promise<readonly CheckRow[]> {
  const table = new Table(''),
    look = async (name: string, found: () => Promise<string>): Promise<void> => {
      try {
        table.ok(name, await found());
      } catch (e) {
        const { message, remedy } = toRunError(e);
        table.wrong(name, message, remedy);
      }
    };
  await look('tasks', async () => {
    const { families, leftOut = 0 } = await openTasks(c, await desktopContents(c.desktops));
    return `${families.length} families${leftOut > 0 ? `, ${leftOut} task files cannot run here` : ''}`;
  });
  const { from } = c.warmStart;
  if (from !== undefined) await look('warmStart.from', async () => (await startingPoint(from)).dir);
  return table.rows;
}
