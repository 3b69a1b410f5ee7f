import { describe, expect, it } from 'vitest';
import { endEach } from '../../../runtime/run/stopping.js';

describe('the parts of a run that ends', () => {
  it('all end, whatever one of them meets, and the first failure is told', async () => {
    const ended: string[] = [],
      fails = (why: string) => () => {
        ended.push(why);
        return Promise.reject(new Error(why));
      };
    const failure = await endEach(1000, [
      fails('orders'),
      () => {
        throw new Error('at once');
      },
      () => undefined,
      fails('screens'),
      () => {
        ended.push('progress');
        return Promise.resolve();
      },
    ]);
    expect(failure).toMatchObject({ message: 'orders' });
    expect(ended).toEqual(['orders', 'screens', 'progress']);
    expect(await endEach(1000, [() => Promise.resolve(1)])).toBeUndefined();
  });
});
