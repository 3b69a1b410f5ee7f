import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { parseRunFile } from '../../../runtime/config/index.js';
import { slowEngine } from '../../bench/live/slow.js';
import { slowPlan } from '../../bench/live/vlmPlan.js';

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});
interface Seen {
  readonly path: string;
  readonly body: string;
}
/** An engine that remembers what it was asked, and answers with the model of the request. */
async function engine(seen: Seen[]): Promise<string> {
  const s: Server = createServer((req, res) => {
    let body = '';
    req.on('data', (d: Buffer) => (body += d.toString('latin1')));
    req.on('end', () => {
      seen.push({ path: req.url!, body });
      res.setHeader('x-engine', 'yes');
      res.statusCode = req.url === '/v1/missing' ? 404 : 200;
      res.end(req.url === '/v1/models' ? JSON.stringify({ data: [{ id: 'run.1@v3.a' }, { id: 'run.1@v3.b' }] }) : body);
    });
  });
  await new Promise<void>((r) => s.listen(0, '127.0.0.1', r));
  stops.push(
    () =>
      new Promise((done) => {
        s.close(() => done());
        s.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(s.address() as AddressInfo).port}`;
}
async function slow(at: string, replica: string, acting = { now: false }): Promise<string> {
  const s = await slowEngine({ engine: at, port: 0, replica, decode: [0, 0.01], update: 0.01, acting });
  stops.unshift(s.stop);
  return s.url;
}
const post = async (url: string, body: string): Promise<{ status: number; text: string; header: string | null }> => {
  const r = await fetch(url, { method: 'POST', body });
  return { status: r.status, text: await r.text(), header: r.headers.get('x-engine') };
};

describe('an engine as slow as one with a large model', () => {
  it('keeps the weights of two replicas apart, which call them alike', async () => {
    const seen: Seen[] = [],
      at = await engine(seen),
      [a, b] = [await slow(at, '.a'), await slow(at, '.b')],
      said = JSON.stringify({ model: 'run.1@v3', messages: [{ image_url: { url: 'data:' } }] });
    await post(`${a}/v1/load_lora_adapter`, JSON.stringify({ lora_name: 'run.1@v3', lora_path: 'tinker://x' }));
    await post(`${b}/v1/unload_lora_adapter`, JSON.stringify({ lora_name: 'run.1@v3' }));
    expect(seen.map((s) => s.body)).toEqual([
      '{"lora_name":"run.1@v3.a","lora_path":"tinker://x"}',
      '{"lora_name":"run.1@v3.b"}',
    ]);
    expect((await post(`${b}/v1/chat/completions`, said)).text).toBe(said);
    expect(seen.at(-1)!.body).toContain('"model":"run.1@v3.b"');
    const models = (await (await fetch(`${b}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map((m) => m.id)).toEqual(['run.1@v3.a', 'run.1@v3']);
  });

  it('passes everything else on as it is, and says so when the engine is away', async () => {
    const seen: Seen[] = [],
      at = await engine(seen),
      a = await slow(at, '.a');
    expect(await post(`${a}/api/v1/optim_step`, '{"model":"run.1@v3"}')).toEqual({
      status: 200,
      text: '{"model":"run.1@v3"}',
      header: 'yes',
    });
    expect((await post(`${a}/v1/missing`, '')).status).toBe(404);
    const acting = { now: false },
      b = await slow(at, '.b', acting);
    await post(`${b}/v1/chat/completions`, '{"messages":[]}');
    expect(acting.now).toBe(false);
    await post(`${b}/v1/chat/completions`, '{"image_url":""}');
    expect(acting.now).toBe(true);
    await post(`${b}/api/v1/create_session`, '{}');
    expect(acting.now).toBe(false);
    for (const stop of stops.splice(-1)) await stop();
    expect((await post(`${a}/v1/missing`, '')).status).toBe(502);
  });
});

describe('the plan of the regimes with a slow model', () => {
  it('differs from turn to turn in regime and sync alone, and learns at full speed before', () => {
    const engine = { url: 'http://127.0.0.1:1', model: '/m', imageToken: 9 },
      slow = [2, 3, 4].map((p) => `http://127.0.0.1:${p}`),
      plan = slowPlan({ regimes: ['a', 'd'], turns: 2, minutes: 4, seed: 1, quick: false, engine, slow }),
      files = plan.map((e) => parseRunFile(e.file));
    expect(plan.map((e) => e.variant).sort()).toEqual(['a', 'a', 'base', 'd', 'd']);
    const [base, ...turns] = files.map((c, i) => ({ c, of: plan[i]! }));
    expect(base!.c.policy.vlm!.endpoints).toEqual(['http://127.0.0.1:1/v1']);
    for (const { c, of } of turns) {
      expect(of.from).toBe('base');
      expect(c.policy.vlm!.endpoints).toEqual(['http://127.0.0.1:3/v1', 'http://127.0.0.1:4/v1']);
      expect(c.trainer.remote!.url).toBe('http://127.0.0.1:2');
      expect([c.rollout.regime, c.policy.sync]).toEqual(
        of.variant === 'a' ? ['batch', 'global'] : ['rollout', 'replica'],
      );
      const { name: _, rollout, policy, ...rest } = c,
        { name: __, rollout: first, policy: other, ...same } = turns[0]!.c;
      expect(rest).toEqual(same);
      expect({ ...rollout, regime: 0 }).toEqual({ ...first, regime: 0 });
      expect({ ...policy, sync: 0 }).toEqual({ ...other, sync: 0 });
    }
  });
});
