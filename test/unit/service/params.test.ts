import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, schemas } from '../../../runtime/service/params.js';

describe('the boundary', () => {
  it('refuses what is wrong and names where', () => {
    expect(() =>
      parse('trajectory/list', schemas.listTrajectories, {
        run: '/r',
        limit: 0,
        filter: { outcome: ['won'] },
        more: 1,
      }),
    ).toThrow(/limit: .*filter\.outcome\.0: /s);
    for (const bad of [{ run: 'relative' }, { run: '' }, {}, null, [], 'x', { run: '/a\0b' }])
      expect(() => parse('run/get', schemas.run, bad)).toThrow(
        expect.objectContaining({ kind: 'params.invalid' }) as Error,
      );
    expect(() =>
      parse('frame/thumbnails', schemas.thumbnails, { run: '/r', width: 100, hashes: ['../../etc/passwd'] }),
    ).toThrow(/hashes\.0/);
    expect(parse('run/get', schemas.run, { run: '/r' })).toEqual({ run: '/r' });
  });
  it('never throws anything else, whatever comes', () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(schemas)), fc.jsonValue(), (schema, value) => {
        try {
          parse<unknown>('m', schema, value);
        } catch (e) {
          expect(e).toMatchObject({ kind: 'params.invalid' });
        }
      }),
    );
  });
});
