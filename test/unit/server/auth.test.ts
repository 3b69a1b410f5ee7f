import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { socketPath } from '../../../runtime/protocol/version.js';
import { refusal } from '../../../runtime/server/auth.js';

const token = 'ab'.repeat(32),
  port = 4321;
const good = { url: socketPath, headers: { host: `127.0.0.1:${port}`, authorization: `Bearer ${token}` } };

describe('refusal', () => {
  it('lets in exactly what is right', () => {
    expect(refusal(good, port, token)).toBeUndefined();
    expect(refusal({ headers: good.headers }, port, token)).toBe('path');
  });
  it('checks path, host, origin and token in this order', () => {
    const bad = { url: '/x', headers: { host: 'evil', origin: 'http://evil', authorization: 'Bearer x' } };
    expect(refusal(bad, port, token)).toBe('path');
    expect(refusal({ ...bad, url: socketPath }, port, token)).toBe('host');
    expect(refusal({ url: socketPath, headers: { ...bad.headers, host: good.headers.host } }, port, token)).toBe(
      'origin',
    );
    expect(refusal({ url: socketPath, headers: { ...good.headers, authorization: 'Bearer x' } }, port, token)).toBe(
      'token',
    );
  });
  it('an Origin is never right, whatever it says', () => {
    fc.assert(
      fc.property(
        fc.string(),
        (origin) => refusal({ ...good, headers: { ...good.headers, origin } }, port, token) === 'origin',
      ),
    );
  });
  it('no other authorization is right', () => {
    const near = fc.oneof(
      fc.string(),
      fc.constantFrom(
        token,
        `bearer ${token}`,
        `Bearer  ${token}`,
        `Bearer ${token} `,
        `Bearer ${token.toUpperCase()}`,
        `Basic ${token}`,
        `Bearer ${token}${token}`,
        `Bearer ${token.slice(1)}`,
        `Bearer ${token.slice(1)}c`,
      ),
    );
    fc.assert(
      fc.property(
        near,
        (authorization) => refusal({ ...good, headers: { ...good.headers, authorization } }, port, token) === 'token',
      ),
    );
  });
});
