import { describe, expect, it } from 'vitest';
import type { ReviewItem, ReviewQueue } from '../../../runtime/protocol/types.js';
import { begin, continued, limitAfter, mark, neighbour, skipped } from '../../../webview/annotator/walk.js';

const item = (rollout: string): ReviewItem =>
  ({ row: { rollout }, priority: 1, why: 'w', reviewed: false }) as unknown as ReviewItem;
const queue = (names: readonly string[], total = names.length, reviewed = 0): ReviewQueue => ({
  items: names.map(item),
  total,
  reviewed,
});
const names = (items: readonly ReviewItem[]): string[] => items.map((i) => i.row.rollout);

describe('the review queue as one walks through it', () => {
  it('goes on behind its end with what the daemon lists besides; what was walked does not come again', () => {
    const first = begin(queue(['a', 'b', 'c'], 5));
    expect(first.open).toBe(5);
    // The daemon does not know of the review of `c` yet.
    const w = mark(mark(first, 'a', true), 'c', true),
      more = continued(w, queue(['b', 'c', 'd'], 5, 1));
    expect(names(more.items)).toEqual(['a', 'b', 'c', 'd']);
    expect([more.open, more.reviewed, [...more.done]]).toEqual([5, 0, ['a', 'c']]);
    expect(neighbour(more, 'c', 1, true)?.row.rollout).toBe('d');
    expect(names(skipped(more))).toEqual(['b', 'd']);
    expect(continued(w, queue(['b'], 3, 2))).toBe(w);
  });
  it('asks for as many more as it skipped', () => {
    const w = begin(
      queue(
        Array.from({ length: 200 }, (_, i) => `r${i}`),
        5000,
      ),
    );
    expect(limitAfter(w)).toBe(400);
    expect(limitAfter(mark(w, 'r3', true))).toBe(399);
    expect(limitAfter(begin(queue(Array.from({ length: 1000 }, (_, i) => `r${i}`))))).toBe(1000);
  });
});
