import { describe, expect, it } from 'vitest';
import { outcomes } from '../../../runtime/queries/curves.js';

/** A reader whose newest end of a rollout has this number, and what is read of it. */
function reader(): { readonly run: never; newest: unknown; rows: unknown[][]; reads: number; fails: boolean } {
  const r = {
    newest: 7 as unknown,
    rows: [[100], ['a'], [1]] as unknown[][],
    reads: 0,
    fails: false,
    run: undefined as never,
  };
  r.run = {
    index: {
      query: () => Promise.resolve([{ seq: r.newest }]),
      columns: () => {
        r.reads++;
        return r.fails ? Promise.reject(new Error('closed')) : Promise.resolve(r.rows);
      },
    },
  } as never;
  return r;
}

describe('outcomes of a run', () => {
  it('are read once until another rollout has ended', async () => {
    const r = reader();
    expect(await outcomes(r.run)).toEqual({ at: [100], family: ['a'], success: [true] });
    await Promise.all([outcomes(r.run), outcomes(r.run)]);
    expect(r.reads).toBe(1);
    r.newest = 9;
    r.rows = [
      [100, 200],
      ['a', 'b'],
      [1, 0],
    ];
    expect((await outcomes(r.run)).success).toEqual([true, false]);
    expect(r.reads).toBe(2);
  });
  it('are read again where that failed, and where nothing says what is newest', async () => {
    const r = reader();
    r.fails = true;
    await expect(outcomes(r.run)).rejects.toThrow('closed');
    r.fails = false;
    expect((await outcomes(r.run)).at).toEqual([100]);
    r.newest = null;
    await outcomes(r.run);
    await outcomes(r.run);
    expect(r.reads).toBe(4);
  });
});
