import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
  type Step,
} from '../../../runtime/domain/index.js';
import { openSample } from '../../../extension/model/sampleArchive.js';
import { decodePng, toBgrx } from '../../../runtime/data/store/png.js';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { placeOfText } from '../../../runtime/policy/embedded/codec.js';
import { embeddedPolicy } from '../../../runtime/policy/embedded/embeddedPolicy.js';
import { openGraph, type GraphSession } from '../../../runtime/policy/embedded/graphSession.js';
import { makeSampler } from '../../../runtime/policy/embedded/sampling.js';
import type { DecisionPool, PolicySession } from '../../../runtime/policy/types.js';
import { Learner } from '../../../runtime/trainer/native/learner.js';
import { policyModel, writePolicyGraph } from '../../../runtime/trainer/native/model/policyGraph.js';
import { baseTrainerOptions } from '../../helpers/trainer/options.js';
import { policySamples } from './problem.js';

/** A trained policy: one that has not learned to read sees no letters, and has nothing to look for among them. */
const TRAINED = 'test/bench/results/miniwob/policy.tar.xz';
/** The sample run: its screens are those of real desktops, in the order in which replicas saw them. */
const SAMPLE = 'media/sample.br',
  WARM_UP = 6,
  /** Of so many decisions one is of a replica that has seen nothing. */
  NEW_SHARE = 8;
/** What a replica reports of each choice (policy/embedded/replica.ts). */
const REPORTED = { top: 5, topPlaces: 32 };

export interface Decisions {
  /** From a screen of 640x400 to an action, and of that what a replica does: reading, finding words, deciding. */
  readonly ms: readonly number[];
  readonly replicaMs: readonly number[];
  /** The same where nothing of a screen was seen before. */
  readonly newMs: readonly number[];
}

/**
 * Decisions of the shipped policy as a run makes them, on one thread and without the message between daemon and replica:
 * at every recorded step of the sample run, in order, again and again until there are `count`; each time by a replica
 * that has seen nothing yet.
 */
export async function decisions(count: number): Promise<Decisions> {
  const steps = await sampleSteps(),
    trained = await putTrained(),
    ms: number[] = [],
    replicaMs: number[] = [],
    newMs: number[] = [];
  try {
    while (ms.length < count) {
      const graph = await openWarm(trained);
      await decideAt(graph, steps, (all, own) => {
        ms.push(all);
        replicaMs.push(own);
      });
      await graph.release();
    }
    const every = Math.ceil((NEW_SHARE * steps.length) / count);
    for (const step of steps.filter((_, i) => i % every === 0)) {
      const graph = await openWarm(trained);
      await decideAt(graph, [step], (all) => newMs.push(all));
      await graph.release();
    }
  } finally {
    rmSync(trained.dir, { recursive: true, force: true });
  }
  return { ms, replicaMs, newMs };
}

interface SampleStep {
  readonly rollout: RolloutId;
  readonly instruction: string;
  readonly frame: Frame;
}
/** Decides at each step in turn, each rollout's in a session of its own; tells how long each took, in ms. */
async function decideAt(
  graph: GraphSession,
  steps: readonly SampleStep[],
  took: (all: number, replica: number) => void = () => undefined,
): Promise<void> {
  const policy = embeddedPolicy(READER_SPEC, inProcess(graph)),
    sessions = new Map<RolloutId, PolicySession>();
  for (const { rollout, instruction, frame } of steps) {
    const session =
        sessions.get(rollout) ??
        policy.open({
          rollout,
          instruction,
          screen: frame,
          sampling: { greedy: false, temperature: 0.6, seed: sessions.size },
        }),
      began = performance.now(),
      { computeMs } = await session.decide(frame, new AbortController().signal);
    took(performance.now() - began, computeMs);
    sessions.set(rollout, session);
  }
  for (const session of sessions.values()) session.close();
}
/** ONNX Runtime plans and allocates in its first runs. They are on noise: no part of it is on a desktop. */
async function openWarm(t: Trained): Promise<GraphSession> {
  const graph = await openGraph(READER_SPEC, t.graph, t.weights),
    rng = random('noise'),
    frame = { width: 640, height: 400, capturedAt: 0 },
    noise = (): Buffer => Buffer.from(Uint8Array.from({ length: 4 * 640 * 400 }, () => rng.int(256)));
  await decideAt(
    graph,
    Array.from({ length: WARM_UP }, (_, i) => ({
      rollout: id<RolloutId>(`warm-up-${i}`),
      instruction: 'Click "Lemon"',
      frame: { ...frame, data: noise() },
    })),
  );
  return graph;
}

/** Steps of the sample run whose screens are kept, in the order in which they were recorded. */
async function sampleSteps(): Promise<SampleStep[]> {
  const into = mkdtempSync(join(tmpdir(), 'bench-sample-'));
  try {
    const dir = await (await openSample(readFileSync(SAMPLE))).unpack(into),
      run = await RunReader.open(dir, { index: 'local' }),
      instructions = new Map<RolloutId, string>(),
      recorded: { readonly rollout: RolloutId; readonly step: Step }[] = [];
    for await (const e of run.events()) {
      if (e.type === 'trajectory.recorded') instructions.set(e.head.id, e.head.instruction);
      if (e.type === 'rollout.step') recorded.push(e);
    }
    const steps: SampleStep[] = [];
    for (const { rollout, step } of recorded) {
      const png = await run.frames.read(step.frame).catch(() => undefined),
        instruction = instructions.get(rollout);
      if (!png || instruction === undefined) continue;
      const { rgb, width, height } = await decodePng(png);
      steps.push({
        rollout,
        instruction,
        frame: { width, height, data: await toBgrx(rgb, width, height), capturedAt: 0 },
      });
    }
    await run.close();
    return steps;
  } finally {
    rmSync(into, { recursive: true, force: true });
  }
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

interface Trained {
  readonly dir: string;
  readonly graph: string;
  readonly weights: { readonly path: string; readonly sha256: string };
}
/** As the trainer leaves it for replicas: graphs without weights, and these in a file of their own. */
async function putTrained(): Promise<Trained> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-decision-')),
    graph = join(dir, 'policy.onnx'),
    path = join(dir, 'weights.f32'),
    bytes = new Uint8Array(trainedTheta().buffer);
  writeFileSync(path, bytes);
  await writePolicyGraph(READER_SPEC, graph);
  return { dir, graph, weights: { path, sha256: createHash('sha256').update(bytes).digest('hex') } };
}
/** The parameters of the kept policy. */
function trainedTheta(): Float32Array {
  const list = execFileSync('tar', ['-tJf', TRAINED], { encoding: 'utf8' }).split('\n'),
    name = list.find((n) => n.endsWith('/weights.f32')),
    bytes = execFileSync('tar', ['-xJOf', TRAINED, name ?? 'weights.f32'], { maxBuffer: 1 << 26 }),
    kept = new Float32Array(new Uint8Array(bytes).buffer),
    { total } = policyModel(READER_SPEC).layout;
  if (kept.length !== total)
    throw new Error(`${TRAINED} has ${kept.length} parameters, ${READER_SPEC.id} has ${total}: name another`);
  return kept;
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
