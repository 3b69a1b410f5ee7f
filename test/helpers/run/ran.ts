import { vi } from 'vitest';
import { main } from '../../../runtime/cli/cli.js';

/** Runs a command in this process: what it writes, and its exit code. */
export async function ran(
  ...args: string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const said = { out: '', err: '' },
    spies = (['out', 'err'] as const).map((to) =>
      vi.spyOn(to === 'out' ? process.stdout : process.stderr, 'write').mockImplementation((text) => {
        said[to] += String(text);
        return true;
      }),
    );
  try {
    return { code: await main(args, {} as never), ...said };
  } finally {
    for (const s of spies) s.mockRestore();
  }
}
