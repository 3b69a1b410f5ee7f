import { accessibilityTree } from '../../tasks/getters/accessibility.js';
import { jsonReply, type Reply } from '../http.js';
import type { TaskContext } from '../../tasks/context.js';

/** GET /accessibility. Desktops have an accessibility bus only where they were started with one. */
export async function accessibility(ctx: TaskContext): Promise<Reply> {
  const tree = await accessibilityTree(ctx);
  return tree !== null
    ? jsonReply({ AT: tree })
    : jsonReply(
        {
          status: 'error',
          message:
            'This desktop has no accessibility tree. Serve desktops with --accessibility, on an image with AT-SPI.',
        },
        500,
      );
}
