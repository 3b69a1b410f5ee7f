import { describe, expect, it } from 'vitest';
import { redact } from '../../../runtime/service/machine.js';

describe('diagnostics', () => {
  it('hide home and secrets', () => {
    const text = redact(
      '/home/ann/runs/x token: abc123 "apiKey": "k-9" Authorization: Bearer a.b-c sk-abcdefgh12 password=hunter2, fine',
      '/home/ann',
    );
    expect(text).toBe(
      '~/runs/x token: [redacted] "apiKey": "[redacted]" Authorization: Bearer [redacted] [redacted] password=[redacted], fine',
    );
  });
  it('leave JSON what it is: what is no text is no secret', () => {
    const run = { policy: { vlm: { imageToken: 151655, apiKey: 'k-9' } }, token: null, secret: [], password: true };
    for (const space of [0, 2])
      expect(JSON.parse(redact(JSON.stringify(run, null, space)))).toEqual({
        ...run,
        policy: { vlm: { imageToken: 151655, apiKey: '[redacted]' } },
      });
    expect(redact('password=151655 token: 42')).toBe('password=[redacted] token: [redacted]');
  });
});
