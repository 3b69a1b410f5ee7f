import { afterEach, describe, expect, it } from 'vitest';
import { ReferenceServer, type ReferenceServerOptions } from '../../helpers/engine/server.js';
import { ran } from '../../helpers/run/ran.js';

const open: ReferenceServer[] = [];
afterEach(() => {
  for (const s of open.splice(0)) s.close();
});

/** `engine probe` of a server, by someone who does not say who will act. */
async function probed(o: ReferenceServerOptions): Promise<{ readonly code: number; readonly out: string }> {
  const s = await ReferenceServer.start({ pollMs: 20, ...o });
  open.push(s);
  return ran('engine', 'probe', s.url, '--rank', '0');
}

describe('`engine probe`', () => {
  it('ends with 0 for a server that samples with what it trained', async () => {
    const { code, out } = await probed({});
    expect(out).toMatch(/✓ adapter/);
    expect(code).toBe(0);
  });
  it('ends with 1 for one that samples with the base model, whoever is to act', async () => {
    const { code, out } = await probed({ faults: ['noop-adapter'] });
    expect(out).toMatch(/✗ adapter +the adapter is not active/);
    expect(code).toBe(1);
  });
});
