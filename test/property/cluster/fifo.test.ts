import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Fifo } from '../../../runtime/cluster/fifo.js';

describe('Fifo', () => {
  it('gives what is in it in the order in which it came, whatever was taken out', () => {
    const steps = fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'shift'), fc.nat(300)), { maxLength: 2000 });
    fc.assert(
      fc.property(steps, (list) => {
        const fifo = new Fifo<number>();
        let plain: number[] = [];
        for (const [what, n] of list) {
          if (what === 'add') {
            fifo.add(n);
            if (!plain.includes(n)) plain.push(n);
          } else if (what === 'delete') {
            expect(fifo.delete(n)).toBe(plain.includes(n));
            plain = plain.filter((x) => x !== n);
          } else expect(fifo.shift()).toBe(plain.shift());
          expect(fifo.size).toBe(plain.length);
        }
        while (plain.length > 0) expect(fifo.shift()).toBe(plain.shift());
        expect(fifo.shift()).toBeUndefined();
      }),
    );
  });

  it('does not grow with what has gone through it', () => {
    const fifo = new Fifo<number>();
    const spliced: number[] = [];
    const splice = Array.prototype.splice;
    Array.prototype.splice = function (this: unknown[], ...args: [number, number]) {
      spliced.push(this.length);
      return splice.apply(this, args);
    };
    try {
      for (let n = 0; n < 10_000; n++) {
        fifo.add(n);
        if (n % 2 === 0) fifo.delete(n);
        else if (n > 20) fifo.shift();
      }
    } finally {
      Array.prototype.splice = splice;
    }
    expect(Math.max(...spliced)).toBeLessThan(300);
  });
});
