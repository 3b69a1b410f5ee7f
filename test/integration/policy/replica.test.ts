import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import * as ort from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EncodedState, ReplicaId, RunError } from '../../../runtime/domain/index.js';
import { GLYPH_SPEC, HEADS_OF_TYPE, headOffsets, id } from '../../../runtime/domain/index.js';
import { startReplica } from '../../../runtime/policy/embedded/replica.js';
import type { Replica, ReplicaRequest, WeightsRef } from '../../../runtime/policy/types.js';
import { isAlive } from '../../helpers/machine/processes.js';
import { frameOf } from '../../helpers/policy/frames.js';
import type { ReplicaKit } from '../../helpers/policy/replicas.js';
import { replicaKit } from '../../helpers/policy/replicas.js';
import { encodeFrame } from '../../helpers/policy/encodeFrame.js';

const spec = GLYPH_SPEC;
const state: EncodedState = encodeFrame(
  spec,
  frameOf(640, 400, (x, y) => [(x * y) & 255, x & 255, y & 255]),
  'Type "hello" into the box and press 7',
  [],
);
const ask = (o: Partial<ReplicaRequest> = {}): ReplicaRequest => ({
  state,
  greedy: false,
  temperature: 1,
  seed: 1,
  copyable: 8,
  ...o,
});

let kit: ReplicaKit;
let w0: WeightsRef;
beforeAll(async () => {
  kit = await replicaKit();
  w0 = await kit.weights(0);
});
afterAll(async () => {
  await kit?.dispose();
});
const start = (weights: WeightsRef): Promise<Replica> =>
  startReplica({ id: id<ReplicaId>('r1'), entry: kit.entry, spec, graph: kit.graph, weights });

/** The same graph in this process, without any of our code. */
async function logits(w: WeightsRef): Promise<Record<string, number[]>> {
  const session = await ort.InferenceSession.create(kit.graph);
  const bytes = await readFile(w.path);
  const theta = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
  const out = await session.run({
    theta: new ort.Tensor('float32', theta, [theta.length]),
    obs: new ort.Tensor('uint8', state.obs, [1, 200, 320]),
    instruction: new ort.Tensor('int32', state.instruction, [1, 48]),
    history: new ort.Tensor('int32', state.history, [1, 17]),
  });
  const r = Object.fromEntries(Object.entries(out).map(([k, t]) => [k, Array.from(t.data as Float32Array)]));
  await session.release();
  return r;
}
const logSoftmax = (z: number[], t: number): number[] => {
  const m = Math.max(...z),
    s = Math.log(z.reduce((a, x) => a + Math.exp((x - m) / t), 0));
  return z.map((x) => (x - m) / t - s);
};

describe('a replica process', () => {
  it('samples from the softmax of the graph and reports exactly that distribution', async () => {
    const r = await start(w0);
    try {
      const z = await logits(w0);
      const off = headOffsets(spec);
      for (const temperature of [1, 0.5])
        for (let seed = 0; seed < 20; seed++) {
          const a = await r.decide(ask({ seed, temperature }));
          expect(a.version).toBe(0);
          const heads = ['type' as const, ...HEADS_OF_TYPE[spec.types[a.choices[0]!]!]];
          expect(a.choices.length).toBe(heads.length);
          heads.forEach((h, i) => {
            const raw = h === 'text' ? z[h]!.map((x, k) => (k >= 8 && k < 24 ? -Infinity : x)) : z[h]!;
            const lp = logSoftmax(raw, temperature);
            const index = a.choices[i]! - off[h];
            expect(a.logprobs[i]).toBeCloseTo(lp[index]!, 4);
            expect(a.entropies[i]).toBeCloseTo(-lp.reduce((s, l) => s + (l === -Infinity ? 0 : Math.exp(l) * l), 0), 4);
            const top = a.alternatives![i]!;
            expect(top[0]!.probability).toBeCloseTo(Math.exp(Math.max(...lp)), 4);
            expect(top.length).toBe(
              Math.min(h === 'cell' || h === 'cell2' ? 32 : 5, lp.filter((l) => l > -Infinity).length),
            );
          });
        }
      expect(Array.from((await r.decide(ask({ seed: 7 }))).choices)).toEqual(
        Array.from((await r.decide(ask({ seed: 7 }))).choices),
      );
    } finally {
      await r.close();
    }
  });

  it('takes the most probable choices when greedy, whatever the seed', async () => {
    const r = await start(w0);
    try {
      const z = await logits(w0);
      const best = z.type!.indexOf(Math.max(...z.type!));
      for (const seed of [1, 2, 3]) expect((await r.decide(ask({ greedy: true, seed }))).choices[0]).toBe(best);
    } finally {
      await r.close();
    }
  });

  it('answers with new weights after a swap, and keeps the old ones when the file is damaged', async () => {
    const r = await start(w0);
    try {
      const w1 = await kit.weights(1);
      await r.swap(w1);
      expect(r.version).toBe(1);
      const a = await r.decide(ask({ seed: 3 }));
      expect(a.version).toBe(1);
      expect(a.logprobs[0]).toBeCloseTo(logSoftmax((await logits(w1)).type!, 1)[a.choices[0]!]!, 4);
      const bad = await kit.weights(2);
      await writeFile(bad.path, Buffer.alloc(100));
      await expect(r.swap(bad)).rejects.toMatchObject({ kind: 'store.damaged' });
      await expect(r.swap({ ...w1, version: 3, path: '/nowhere' })).rejects.toMatchObject({ kind: 'store.damaged' });
      expect(r.version).toBe(1);
      expect((await r.decide(ask({ seed: 3 }))).logprobs).toEqual(a.logprobs);
    } finally {
      await r.close();
    }
  });

  it("says that weights which give no numbers are the trainer's fault", async () => {
    const r = await start(await kit.weights(9, { scale: NaN }));
    try {
      await expect(r.decide(ask())).rejects.toMatchObject({ kind: 'trainer.invalid' });
    } finally {
      await r.close();
    }
  });

  it('rejects its calls and tells its listeners when it is killed', async () => {
    const r = await start(w0);
    const lost: RunError[] = [];
    const told = new Promise<void>((done) => {
      r.onLost((e) => {
        lost.push(e);
        done();
      });
    });
    const pid = (r as unknown as { child: { pid: number } }).child.pid;
    const calls = Array.from({ length: 5 }, (_, i) => r.decide(ask({ seed: i })));
    const failed = Promise.allSettled(calls);
    process.kill(pid, 'SIGKILL');
    await told;
    const results = await failed;
    expect(results.some((x) => x.status === 'rejected')).toBe(true);
    for (const x of results)
      if (x.status === 'rejected') expect((x.reason as { kind: string }).kind).toBe('policy.lost');
    expect(lost[0]!.message).toContain('SIGKILL');
    await expect(r.decide(ask())).rejects.toMatchObject({ kind: 'policy.lost' });
    await r.close();
  });

  it('cannot start without its graph or weights, and says why', async () => {
    await expect(
      startReplica({ id: id<ReplicaId>('r'), entry: kit.entry, spec, graph: '/nowhere.onnx', weights: w0 }),
    ).rejects.toMatchObject({ kind: 'engine.unavailable' });
    await expect(start({ ...w0, sha256: 'f'.repeat(64) })).rejects.toMatchObject({ kind: 'store.damaged' });
    await expect(
      startReplica({ id: id<ReplicaId>('r'), entry: { file: '/nowhere.js' }, spec, graph: kit.graph, weights: w0 }),
    ).rejects.toMatchObject({ kind: 'policy.lost' });
  });

  it('ends by itself, cleanly, when asked to close', async () => {
    const r = await start(w0);
    const child = (r as unknown as { child: ChildProcess }).child;
    const answer = r.decide(ask());
    await r.close();
    await answer;
    expect([child.exitCode, child.signalCode]).toEqual([0, null]);
  });

  it.skipIf(process.platform !== 'linux')('ends when the daemon is killed (looks into /proc)', async () => {
    const daemon = join(process.cwd(), `dist/test-daemon-${process.pid}.mjs`);
    await build({
      stdin: {
        contents: `import { startReplica } from './runtime/policy/embedded/replica.ts'; const r = await startReplica(JSON.parse(process.argv[2])); console.log(r.child.pid); setInterval(() => r.decide(JSON.parse(process.argv[3])).catch(() => undefined), 5);`,
        resolveDir: process.cwd(),
      },
      outfile: daemon,
      bundle: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      external: ['onnxruntime-node'],
      logLevel: 'warning',
    });
    const small = {
      state: { obs: [], instruction: [], history: [] },
      greedy: true,
      temperature: 1,
      seed: 1,
      copyable: 1,
    };
    const parent = spawn(
      process.execPath,
      [
        daemon,
        JSON.stringify({ id: 'r1', entry: kit.entry, spec, graph: kit.graph, weights: w0 }),
        JSON.stringify(small),
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    try {
      const pid = Number(String(await new Promise<Buffer>((r) => parent.stdout.once('data', r))));
      expect(isAlive(pid)).toBe(true);
      parent.kill('SIGKILL');
      // Nobody is told when a grandchild ends, so this looks; the test's own time limit bounds it.
      while (isAlive(pid)) await new Promise((r) => setTimeout(r, 20));
    } finally {
      parent.kill('SIGKILL');
      await rm(daemon, { force: true });
    }
  });
});
