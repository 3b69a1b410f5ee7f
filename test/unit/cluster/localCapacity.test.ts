import { describe, expect, it } from 'vitest';
import { localCapacity } from '../../../runtime/cluster/providers/local.js';

describe('local desktops that a machine can run', () => {
  const GB = 1 << 30;
  it.each([
    ['small programs', 2, 24 * GB, undefined, 32],
    ['little memory', 8, GB, undefined, 6],
    ['none to spare', 8, 0, undefined, 1],
    ["OSWorld's applications", 2, 24 * GB, 3072, 32],
    ["OSWorld's applications, more processors", 16, 24 * GB, 3072, 32],
    ["OSWorld's applications, a laptop", 8, 8 * GB, 3072, 10],
  ])('%s', (_what, cores, free, floorMb, capacity) => {
    expect(localCapacity(cores, free, floorMb)).toBe(capacity);
  });
});
