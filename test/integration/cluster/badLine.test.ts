import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type * as Images from '../../../runtime/cluster/images.js';
import { createPool } from '../../../runtime/cluster/index.js';
import { localProvider, nextEvent, SMALL, whyNoLocalDesktops } from '../../helpers/cluster/desktops.js';

/** An agent in the wrong hands: what is written to the file /say, it says to its client. */
const place = vi.hoisted(() => ({ agent: '' }));
vi.mock('../../../runtime/cluster/images.js', async (original) => ({
  ...(await original<typeof Images>()),
  imageAsset: () => Promise.resolve(place.agent),
}));

const why = await whyNoLocalDesktops();
if (why) console.warn(`skipped: ${why}`);

describe.skipIf(why)('a desktop whose agent says what no agent says', () => {
  const dir = mkdtempSync(join(tmpdir(), 'dart-bad-'));
  mkdirSync(dir, { recursive: true });
  place.agent = join(dir, 'agent.py');
  const own = readFileSync('runtime/cluster/images/desk/overlay/opt/dart/agent.py', 'utf8');
  const wrong = own.replace(
    'def do_write(self, m, _):\n',
    "def do_write(self, m, _):\n        if m['path'] == '/say':\n            for c in list(self.clients):\n                c.out += base64.b64decode(m['data'])\n                c.flush()\n            return {}\n",
  );
  writeFileSync(place.agent, wrong);
  const p = localProvider();
  afterAll(async () => {
    await p.dispose();
    rmSync(dir, { recursive: true, force: true });
  });

  it.each<[string, string]>([
    ['that is not JSON', 'boo\n'],
    ['of the wrong shape', '{"event":"exit","pid":{}}\n'],
    ['that answers nobody', '{"id":4711,"ok":true}\n'],
    ['that is too long', `{"event":"exit","name":"${'x'.repeat(1 << 20)}"}\n`],
    [
      'that is forged for the next question',
      '{"id":7000,"ok":true,"code":0,"stdout":"","stderr":"","timedOut":false}\n',
    ],
  ])('is lost and replaced, and no other: a line %s', async (_what, line) => {
    expect(wrong).not.toBe(own);
    const pool = createPool({ provider: p, spec: SMALL, size: 2 });
    const signal = AbortSignal.timeout(120_000);
    const [bad, good] = await Promise.all([pool.lease({ signal }), pool.lease({ signal })]);
    const lost = nextEvent(bad.desktop, (e) => e.type === 'lost');
    await bad.desktop.writeFile('/say', Buffer.from(line)).catch(() => undefined); // its answer may come too late
    expect(await lost).toMatchObject({ error: { kind: 'desktop.lost' } });
    await expect(bad.desktop.exec(['true'])).rejects.toMatchObject({ kind: 'desktop.lost' });
    expect((await good.desktop.exec(['echo', 'fine'])).stdout.toString()).toBe('fine\n');
    bad.release({ broken: true });
    const fresh = await pool.lease({ signal });
    expect((await fresh.desktop.exec(['echo', 'fresh'])).stdout.toString()).toBe('fresh\n');
    fresh.release();
    good.release();
    await pool.close();
  });
});
