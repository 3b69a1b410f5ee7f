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
});
