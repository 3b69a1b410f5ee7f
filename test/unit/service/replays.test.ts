import { describe, expect, it } from 'vitest';
import { claimName } from '../../../runtime/service/replays.js';

describe('the name of a replay', () => {
  it("is nobody else's, also where another one of the same revision is not recorded yet", async () => {
    const there = new Set(['replay/x@3']),
      query = (_sql: string, params: readonly unknown[] = []) =>
        Promise.resolve(there.has(String(params[0])) ? [{ 1: 1 }] : []),
      run = { reader: { index: { query } } } as Parameters<typeof claimName>[0];
    const names = await Promise.all([1, 2, 3].map(() => claimName(run, '/runs/a', 'replay/x@3')));
    expect([...names].sort()).toEqual(['replay/x@3.2', 'replay/x@3.3', 'replay/x@3.4']);
    expect(await claimName(run, '/runs/b', 'replay/x@3')).toBe('replay/x@3.2');
  });
});
