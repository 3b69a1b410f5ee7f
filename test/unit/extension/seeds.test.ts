import { expect, it } from 'vitest';
import { parseSeeds } from '../../../extension/model/seeds.js';
import { queuedRow, queueRow } from '../../../extension/views/queueRows.js';

it('seeds are numbers and ranges, each once; anything else is refused', () => {
  expect(parseSeeds('')).toEqual([]);
  expect(parseSeeds('1, 2 5-8, 2')).toEqual([1, 2, 5, 6, 7, 8]);
  for (const wrong of ['a', '3-1', '-1', '1.5', '1-1000', '0-99 200']) expect(parseSeeds(wrong)).toBeUndefined();
});
it('shows the queue and its runs as rows', () => {
  expect(queueRow(2, true)).toMatchObject({ label: 'Queue', description: '2 runs · paused', context: 'queue.paused' });
  expect(queuedRow({ id: 'a', name: 'sweep', seed: 7, state: 'waiting' })).toMatchObject({
    label: 'sweep',
    description: 'seed 7',
    context: 'queued.waiting',
  });
  for (const [state, description] of [
    ['failed', 'not started'],
    ['waiting', 'waits for desktops'],
  ] as const)
    expect(queuedRow({ id: 'a', name: 'sweep', state, error: 'No desktops.' })).toMatchObject({
      description,
      icon: { id: 'warning' },
      tooltip: expect.stringContaining('No desktops') as string,
    });
});
