import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  READER_SPEC,
  id,
  random,
  type BatchId,
  type EmbeddedSample,
  type EncodedState,
  type Frame,
  type ReplicaId,
  type RolloutId,
} from '../../../runtime/domain/index.js';
import { placeOfText } from '../../../runtime/policy/embedded/codec.js';
import { embeddedPolicy } from '../../../runtime/policy/embedded/embeddedPolicy.js';
import { openGraph, type GraphSession } from '../../../runtime/policy/embedded/graphSession.js';
import { makeSampler } from '../../../runtime/policy/embedded/sampling.js';
import type { DecisionPool } from '../../../runtime/policy/types.js';
import { deskSuite, quickstartFamilies, trainSeed } from '../../../runtime/tasks/suites/desk/index.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { policyModel, writePolicyGraph } from '../../../runtime/trainer/native/model/policyGraph.js';
import { glyphTask } from '../../helpers/trainer/glyphScreens.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { policySamples } from './problem.js';

/** A trained policy: one that has not learned to read sees no letters, and has nothing to look for among them. */
const TRAINED = 'test/bench/results/miniwob/policy.tar.xz';
const SCREEN = { width: 640, height: 400 },
  /** Words on a drawn screen. */
  WORDS = 18,
  SCREENS = 24,
  WARM_UP = 20;
/** What a replica reports of each choice (policy/embedded/replica.ts). */
const REPORTED = { top: 5, topPlaces: 32 };

export interface Decisions {
  /** From a screen of 640x400 to an action, and of that what a replica does: reading, finding words, deciding. */
  readonly ms: readonly number[];
  readonly replicaMs: readonly number[];
}

/**
 * Decisions of the shipped policy as a run makes them, on one thread and without the message between daemon and replica:
 * another screen and another instruction of the quick start each time.
 */
export async function decisions(count: number): Promise<Decisions> {
  const graph = await openTrained(),
    policy = embeddedPolicy(READER_SPEC, inProcess(graph)),
    suite = deskSuite({ screen: SCREEN }),
    rng = random('decisions'),
    screens = Array.from({ length: SCREENS }, () => doubled(glyphTask(READER_SPEC, rng, WORDS).state.obs)),
    ms: number[] = [],
    replicaMs: number[] = [];
  for (let i = 0; i < WARM_UP + count; i++) {
    const family = quickstartFamilies[i % quickstartFamilies.length]!,
      session = policy.open({
        rollout: id<RolloutId>(`r${i}`),
        instruction: suite.task(family, trainSeed(i)).instruction,
        screen: SCREEN,
        sampling: { greedy: false, temperature: 0.6, seed: i },
      }),
      began = performance.now(),
      { computeMs } = await session.decide(screens[i % SCREENS]!, new AbortController().signal),
      took = performance.now() - began;
    session.close();
    if (i < WARM_UP) continue;
    ms.push(took);
    replicaMs.push(computeMs);
  }
  await graph.release();
  return { ms, replicaMs };
}

/** What `__replica` does with a request (policy/embedded/replicaProcess.ts). */
function inProcess(graph: GraphSession): DecisionPool {
  const sampler = makeSampler(READER_SPEC);
  return {
    decide: async (request) => {
      const began = performance.now(),
        sampled = sampler(await graph.run(request.state), { ...request, ...REPORTED }),
        from = placeOfText(READER_SPEC, sampled.choices),
        read = from === undefined ? {} : { read: graph.textAt(from) };
      return {
        answer: { ...sampled, ...read, version: 0, computeMs: performance.now() - began },
        replica: id<ReplicaId>('bench'),
        queueMs: 0,
      };
    },
    end: () => undefined,
  };
}

/** As the trainer leaves it for replicas: graphs without weights, and these in a file of their own. */
async function openTrained(): Promise<GraphSession> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-decision-')),
    file = join(dir, 'policy.onnx'),
    path = join(dir, 'weights.f32');
  try {
    const bytes = new Uint8Array(trainedTheta().buffer);
    writeFileSync(path, bytes);
    await writePolicyGraph(READER_SPEC, file);
    return await openGraph(READER_SPEC, file, { path, sha256: createHash('sha256').update(bytes).digest('hex') });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
function trainedTheta(): Float32Array {
  const list = execFileSync('tar', ['-tJf', TRAINED], { encoding: 'utf8' }).split('\n'),
    name = list.find((n) => n.endsWith('/weights.f32')),
    bytes = execFileSync('tar', ['-xJOf', TRAINED, name ?? 'weights.f32'], { maxBuffer: 1 << 26 }),
    { total } = policyModel(READER_SPEC).layout;
  if (bytes.length !== 4 * total)
    throw new Error(`${TRAINED} has ${bytes.length / 4} parameters, the shipped policy has ${total}: name another`);
  return new Float32Array(new Uint8Array(bytes).buffer);
}

/** A screen of twice the observation's size. */
function doubled(obs: Uint8Array): Frame {
  const { width, height } = SCREEN,
    pixels = new Uint32Array(width * height);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      pixels[y * width + x] = 0x010101 * obs[(y >> 1) * READER_SPEC.obs.width + (x >> 1)]!;
  return { ...SCREEN, data: Buffer.from(pixels.buffer), capturedAt: 0 };
}

/** Updates of the shipped policy, per state: ms of each of `rounds`, one pass over `states` new states, which it reads. */
export async function shippedUpdates(threads: number, states: number, rounds: number): Promise<number[]> {
  const o = { ...baseTrainerOptions, threads },
    learner = await Learner.create(READER_SPEC, o, 1),
    samples = policySamples(READER_SPEC, states, o.slots, 1),
    ms: number[] = [];
  learner.load({ ...learner.state(), theta: trainedTheta() });
  for (let r = 0; r <= rounds; r++) {
    const batch = { id: id<BatchId>('bench'), samples: asNew(samples), epochs: 1 },
      began = performance.now();
    await learner.update(batch);
    if (r > 0) ms.push((performance.now() - began) / states);
  }
  await learner.release();
  return ms;
}
/** The same samples of states that nobody has looked at: what is read of a state is remembered by the object. */
function asNew(samples: readonly EmbeddedSample[]): EmbeddedSample[] {
  const copies = new Map<EncodedState, EncodedState>();
  return samples.map((s) => {
    const state = copies.get(s.state) ?? { ...s.state };
    copies.set(s.state, state);
    return { ...s, state };
  });
}
