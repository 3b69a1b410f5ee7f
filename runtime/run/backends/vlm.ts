import { withoutSlashes } from '../../foreign/address.js';
import { randomBytes } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { startsEngine, type RunConfig } from '../../config/index.js';
import { StudioError, id, type ReplicaId } from '../../domain/index.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { resizeLimits } from '../../policy/actions/imageTokens.js';
import { ChatSession, type ChatOptions } from '../../policy/remote/chatSession.js';
import { ChatTokenizer } from '../../policy/remote/demonstrationTokens.js';
import { proofOf, unsaidAfter, type Proof, type Scored } from '../../policy/remote/adapterProof.js';
import {
  adapterNames,
  startEndpointReplica,
  type AdapterWeights,
  type ChatAnswer,
  type ChatCall,
} from '../../policy/remote/endpointReplica.js';
import { ModelServer, type ModelServerOptions } from '../../policy/remote/modelServer.js';
import type { ModelCaller } from '../../policy/remote/modelCalls.js';
import type { Policy } from '../../policy/types.js';
import { pooledChat } from '../../policy/remote/pooledChat.js';
import { systemClock } from '../../rollout/clock.js';
import { ModelPool } from '../../rollout/modelPool.js';
import { weightsFolder } from '../../trainer/engine/state.js';
import {
  createRemoteTrainer,
  type RemoteTrainerEngine,
  type RemoteTrainerOptions,
} from '../../trainer/remote/engine.js';
import type { TokenSample } from '../../trainer/remote/sample.js';
import type { TrainerEngine } from '../../trainer/types.js';
import { apiKeyOf } from '../../config/apiKey.js';
import { learnerOf } from './learner.js';
import { LoadedWeights } from './loadedWeights.js';
import { engineState, startOwnEngine } from './ownEngine.js';
import { publishAgain } from './publishAgain.js';
import { keptScreens, modelThread } from './remoteParts.js';
import { servedModel } from './served.js';
import type { StartedParts } from './startedParts.js';
import { blank, blinded } from '../blindPolicy.js';
import type { BackendRequest, PolicyBackend } from './types.js';
import { probed, trainsHead } from './vlmProbe.js';
import { TokenSamples } from './vlmSamples.js';

type VlmConfig = NonNullable<RunConfig['policy']['vlm']>;

/** One answer may take as long as a large model needs for a long thought on a busy server. */
const ANSWER_MS = 300_000;
/**
 * Time limit of a call, waiting for a busy server included. An answer that takes too long fails alone; this limit
 * closes the replica for all calls.
 */
const CALL_MS = 2 * ANSWER_MS;
/** Time limit of listing models, and of unloading one. */
const UNLOAD_MS = 10_000;
/** A server that is restarted has a model to load first. */
const RESTART = { baseMs: 1000, maxMs: 30_000, attempts: 40 };
/** Name under which the training server knows its client. */
const CLIENT = 'dart-studio';
/** AdamW as clients of the Tinker protocol have it by default. */
const ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-12, warmup: 0 };

/** The servers that train a run's model, and those that act with it. */
interface Servers {
  readonly training: RemoteTrainerOptions['server'];
  readonly acting: readonly ModelServerOptions[];
  /** The path of an adapter as the acting servers see it. */
  readonly adapter: (path: string) => string;
  /** Called when the training server has trained something. */
  readonly trained: () => void;
  /** A part of the start, once more where the servers were started again meanwhile. */
  readonly through: <T>(work: () => Promise<T>) => Promise<T>;
}

/** A vision-language model: trained by an engine over the Tinker protocol, acting on servers with runtime adapters. */
export async function startVlm(r: BackendRequest, parts: StartedParts): Promise<PolicyBackend> {
  const { config } = r,
    vlm = config.policy.vlm!,
    servers = startsEngine(config) ? await ownServers(r, parts) : namedServers(config);
  const engine = trainerOptions(r, servers.training),
    found = await servers.through(() => probed(config, engine, r.signal)),
    trainer = await servers.through(() => createRemoteTrainer({ ...engine, ...found }));
  parts.add(() => trainer.close());
  parts.throwIfCancelled();
  if (r.checkpoint) await trainer.restore(r.checkpoint);
  parts.throwIfCancelled();
  const [first] = servers.acting,
    proof = await servers.through(() => proofOf({ ...first!, imageToken: vlm.imageToken }, vlm.model, r.signal)),
    proofs = { newest: proof },
    proven = provenWeights(trainer, proofs, servers);
  const loaded = new LoadedWeights((path) => trainer.forget(path));
  // Before the first of them loads any: a start that fails half-way leaves nothing either.
  if (r.temporary)
    parts.add(async () => {
      await unloadAdapters(servers.acting, basename(r.dir));
      await loaded.forgetAll();
      await trainer.forgetSaved();
    });
  const caller = modelThread(r, parts),
    start = randomBytes(3).toString('hex');
  const again = {
    exportAnew: (w: AdapterWeights) => exportedAnew(trainer, w, servers),
    forget: (w: AdapterWeights) => loaded.refused(w),
    onNote: (text: string) => r.onNote?.(text),
  };
  const models = await servers.through(async () =>
    publishAgain(await proven.exportWeights(), {
      ...again,
      first: true,
      publish: (w) => startPool(r, vlm, { servers: servers.acting, start, loaded, proofs, caller }, w),
      signal: r.signal,
    }),
  );
  loaded.oldest = () => models.oldest;
  parts.add(() => models.close());
  // The adapters of earlier starts were unloaded as the servers were taken; nothing here waits for the deletion of
  // their files.
  void trainer.forgetEarlier();
  if (r.onServed) {
    const { acting, training } = servers,
      adapters = adapterNames(basename(r.dir), start);
    r.onServed(await servedModel({ model: vlm.model, adapters, acting, training, proof }, r.signal));
  }
  parts.throwIfCancelled();
  const ended = new AbortController(),
    chat = chatOptions(r);
  parts.add(() => Promise.resolve(ended.abort()));
  const seeing: Policy = { takesEncoded: true, open: (s) => new ChatSession(chat, pooledChat(models), s) },
    { blind } = config.policy;
  return {
    policy: blind ? blinded(seeing) : seeing,
    frames: r.frames,
    replicas: models,
    learner: learnerOf({
      trainer: proven,
      source: new TokenSamples({
        shown: blind ? (f) => chat.encodePng(blank(f)) : (f) => r.frames.read(f),
        tokenizer: new ChatTokenizer(
          servers.acting.map((o) => new ModelServer(o)),
          vlm.model,
          RESTART,
        ),
        imageToken: vlm.imageToken,
        coordinates: vlm.coordinates,
        limits: chat.limits,
        images: vlm.images,
        prompt: chat.prompt,
        signal: ended.signal,
        through: servers.through,
      }),
      publish: (weights) =>
        publishAgain(weights, {
          ...again,
          publish: (w) => models.publish(w),
          signal: AbortSignal.any([r.signal, ended.signal]),
        }),
    }),
  };
}

/** Weights that are the trainer's still, as new files; what it makes of the proof with them is the same. */
async function exportedAnew(
  trainer: RemoteTrainerEngine,
  weights: AdapterWeights,
  { adapter }: Servers,
): Promise<AdapterWeights | undefined> {
  const anew = await trainer.exportAnew(weights.version);
  return anew && { ...weights, path: adapter(anew.path), saved: anew.path };
}

/** All of a run's that servers have loaded. Another use of the same checkpoint has names of its own. */
async function unloadAdapters(servers: readonly ModelServerOptions[], run: string): Promise<void> {
  await Promise.allSettled(
    servers.map(async (o) => {
      const server = new ModelServer(o),
        names = await withDeadline(UNLOAD_MS, [], (signal) => server.models(signal));
      await Promise.allSettled(names.filter((n) => n.startsWith(`${run}.`)).map((n) => server.unloadAdapter(n)));
    }),
  );
}

/** Servers that run already. */
function namedServers({ policy, trainer }: RunConfig): Servers {
  const vlm = policy.vlm!,
    remote = trainer.remote!,
    key = apiKeyOf('policy.vlm.apiKeyEnv', vlm.apiKeyEnv),
    folder = vlm.adapters === undefined ? undefined : withoutSlashes(vlm.adapters);
  return {
    training: {
      url: remote.url!,
      apiKey: apiKeyOf('trainer.remote.apiKeyEnv', remote.apiKeyEnv),
      version: CLIENT,
    },
    acting: vlm.endpoints.map((url) => ({ url, apiKey: key, timeoutMs: ANSWER_MS })),
    adapter: (path) => (folder === undefined ? path : `${folder}/${path.split('/').at(-1)!}`),
    trained: () => undefined,
    through: (work) => work(),
  };
}

/** The engine that the run starts; where servers are named, they act and load its adapters from the run folder. */
async function ownServers(r: BackendRequest, parts: StartedParts): Promise<Servers> {
  const keeper = await startOwnEngine(r, parts),
    { endpoints, apiKeyEnv } = r.config.policy.vlm!,
    { url, key, fetch, ready } = keeper;
  const own: ModelServerOptions = { url: `${url}/v1`, apiKey: key, timeoutMs: ANSWER_MS, ready },
    others = apiKeyOf('policy.vlm.apiKeyEnv', apiKeyEnv),
    state = resolve(engineState(r.dir));
  return {
    training: { url, apiKey: key, version: CLIENT, fetch },
    acting: endpoints.length === 0 ? [own] : endpoints.map((e) => ({ url: e, apiKey: others, timeoutMs: ANSWER_MS })),
    adapter: (path) => (endpoints.length === 0 ? path : (weightsFolder(state, path) ?? path)),
    trained: () => keeper.progressed(),
    through: (work) => keeper.through(work),
  };
}

/** How the version before answered the proof; absent where servers do not say tokens. */
interface Proofs {
  newest: Proof | undefined;
}
/** Weights go out with what the trainer makes of the proof, so that a server that ignores an adapter is found. */
function provenWeights(
  trainer: RemoteTrainerEngine,
  proofs: Readonly<Proofs>,
  { adapter, trained }: Servers,
): TrainerEngine<TokenSample, AdapterWeights> {
  const done = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    trained();
    return result;
  };
  return {
    update: (b) => done(trainer.update(b)),
    imitate: (b, o) => done(trainer.imitate!(b, o)),
    checkpoint: () => trainer.checkpoint(),
    restore: (c) => trainer.restore(c),
    interrupt: () => trainer.interrupt(),
    close: () => trainer.close(),
    async exportWeights() {
      const { version, path } = await trainer.exportWeights(),
        weights: AdapterWeights = { version, path: adapter(path), saved: path };
      if (!proofs.newest) return weights;
      const { prompt, tokens } = proofs.newest,
        scored = async (answer: Int32Array): Promise<Scored> => ({
          answer,
          logprobs: await trainer.score({ prompt: [{ type: 'encoded_text', tokens: prompt }], answer }),
        }),
        said = await scored(proofs.newest.answer),
        unsaid = await scored(unsaidAfter(prompt));
      // vLLM keeps what is no number in its cache of prompts: calls of every other adapter would fail from then on.
      if (![...said.logprobs, ...unsaid.logprobs].every(Number.isFinite))
        throw new StudioError(
          'trainer.invalid',
          `The weights of version ${version} give log-probs that are no numbers.`,
          'They are not published. Go on from an earlier checkpoint, with a lower trainer.lr.',
        );
      return { ...weights, expected: { prompt, tokens, ...said, unsaid } };
    },
  };
}

function startPool(
  r: BackendRequest,
  vlm: VlmConfig,
  {
    servers,
    start,
    loaded,
    proofs,
    caller,
  }: {
    readonly servers: readonly ModelServerOptions[];
    readonly start: string;
    readonly loaded: LoadedWeights;
    readonly proofs: Proofs;
    readonly caller: ModelCaller;
  },
  weights: AdapterWeights,
): Promise<ModelPool<ChatCall, ChatAnswer, AdapterWeights>> {
  const byId = new Map(servers.map((server) => [id<ReplicaId>(server.url), server]));
  return ModelPool.start<ChatCall, ChatAnswer, AdapterWeights>({
    replicas: [...byId.keys()],
    weights,
    clock: systemClock,
    publishMode: r.config.policy.sync === 'global' ? 'global' : 'per-replica',
    depth: vlm.concurrency,
    concurrency: vlm.concurrency,
    callTimeoutMs: CALL_MS,
    restart: RESTART,
    factory: (replica, w) =>
      startEndpointReplica(
        {
          ...byId.get(replica)!,
          caller,
          id: replica,
          run: basename(r.dir),
          start,
          weights: w,
          imageToken: vlm.imageToken,
          concurrency: vlm.concurrency,
          onLoaded: (x, there) => loaded.change(replica, x, there),
          onProved: (proof) => {
            proofs.newest = proof;
          },
        },
        r.signal,
      ),
  });
}

const chatOptions = ({ config: { policy, trainer }, frames }: BackendRequest): ChatOptions => {
  const vlm = policy.vlm!;
  return {
    ...keptScreens(frames),
    coordinates: vlm.coordinates,
    limits: resizeLimits(vlm.coordinates, trainer.remote!.options),
    images: vlm.images,
    maxTokens: vlm.maxTokens,
    topLogprobs: vlm.alternatives,
    imageToken: vlm.imageToken,
    prompt: promptOf(vlm.prompt),
  };
};

/** The run file's own prompt; undefined is that of UI-TARS. An instruction with a dollar sign stays as it is. */
export const promptOf = (text: string | undefined): ChatOptions['prompt'] =>
  text === undefined ? undefined : { template: (instruction) => text.split('{instruction}').join(instruction) };

function trainerOptions(
  r: BackendRequest,
  server: RemoteTrainerOptions['server'],
): Omit<RemoteTrainerOptions, 'carriage' | 'leaveModels'> {
  const { trainer: t, seed, policy } = r.config,
    vlm = policy.vlm!,
    remote = t.remote!;
  return {
    server,
    model: { base: vlm.model, rank: remote.rank, seed, head: trainsHead(r.config) },
    dir: join(r.dir, 'checkpoints'),
    loss: remote.loss,
    objective: {
      algorithm: t.algorithm,
      epsLow: t.epsLow,
      epsHigh: t.epsHigh,
      dualClip: t.dualClip,
      tis: { ...t.tis, level: 'token' },
      unknownBehaviour: 'one',
      klBeta: t.klBeta,
      imitationCoef: t.imitationCoef,
    },
    adam: { ...ADAM, lr: t.lr, weightDecay: t.weightDecay, gradClip: t.gradClip },
    minibatch: t.minibatchStates,
    targetKl: t.targetKl,
    seed,
    version: r.version,
    onProgress: (p) => {
      if (p.kind === 'imitate') r.onLesson?.(p.step, p.steps, p.loss);
    },
    onRestart: (why) => r.onNote?.(`Training continues from its last checkpoint: ${why}`),
  };
}
