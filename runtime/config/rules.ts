import { makesDemonstrations } from './demonstrations.js';
import { FOR_A_POOL, WHO_ACTS } from './fullWeights.js';
import { trainingMemory } from './gpuFigures.js';
import { declaredPolicies, traitsOf } from './policies/index.js';
import type { Rule, Violation } from './policies/types.js';
import type { RunConfig } from './schema.js';

/**
 * Rules across options of a run file; the schema sees each option by itself. A run file that 0.1 accepted is refused
 * only if its run could not have finished.
 */

/** Desktops that there can be at once, where the run file says so; Infinity elsewhere. */
function placesOf(d: RunConfig['desktops']): number {
  if (d.provider === 'docker' && d.hosts) return d.hosts.reduce((n, h) => n + h.capacity, 0);
  if (d.provider === 'kubernetes') return d.kubernetes.capacity ?? Infinity;
  if (d.provider === 'osworld' && d.osworld.servers.length > 0) return d.osworld.servers.length;
  return Infinity;
}

const needs: readonly Rule[] = [
  {
    key: 'tasks.dir',
    broken: (c) => c.tasks.suite === 'folder' && !c.tasks.dir,
    what: 'required because tasks.suite is "folder"',
    remedy: 'Set it to the folder that holds the task files.',
  },
  {
    key: 'tasks.dir',
    broken: (c) => c.tasks.suite === 'miniwob' && !c.tasks.dir,
    what: 'required because tasks.suite is "miniwob", which is not part of DART Studio',
    remedy:
      'Set it to a checkout of Farama-Foundation/miniwob-plusplus, or to the folder its wheel (PyPI: miniwob) is unpacked to.',
  },
  {
    key: 'desktops.image',
    broken: (c) => c.tasks.suite === 'miniwob' && c.desktops.image !== 'web',
    what: 'the pages of MiniWoB++ need a browser, which the image "web" keeps open',
    remedy: 'Set desktops.image to "web", or leave it out.',
  },
  {
    key: 'desktops.network',
    broken: ({ desktops: d }) => d.network === 'internet' && d.provider !== 'docker' && d.provider !== 'osworld',
    what: 'only containers and machines of OSWorld can have a network',
    remedy: 'Set desktops.provider to "docker" or "osworld", or desktops.network to "none".',
  },
  {
    key: 'warmStart.demonstrations',
    broken: (c) => makesDemonstrations(c) && placesOf(c.desktops) <= c.desktops.count,
    what: 'demonstrations need a desktop beside those of the rollouts, and there is no place for one',
    remedy:
      'Lower desktops.count below the places there are (the capacities of desktops.hosts added up, desktops.kubernetes.capacity, or desktops.osworld.servers), give more places, or set warmStart.demonstrations to 0.',
  },
  {
    key: 'desktops.provider',
    broken: (c) => c.tasks.suite === 'miniwob' && c.desktops.provider === 'osworld',
    what: 'the pages of MiniWoB++ need the image "web", and servers of OSWorld have their own',
    remedy: 'Use another provider, or leave it out.',
  },
  {
    key: 'curation.branches.enabled',
    broken: (c) => c.curation.branches.enabled && !traitsOf(c.policy.kind).midway,
    what: 'a language model cannot be put into the middle of an episode: it would have to be told what it never said',
    remedy: 'Set curation.branches.enabled to false, or use policy.kind "embedded".',
  },
  {
    key: 'curation.hindsight.enabled',
    broken: ({ curation: k, tasks }) => k.hindsight.enabled && tasks.suite !== 'desk',
    what: 'only tasks of the built-in suite say what else their screens could be of',
    remedy: 'Set curation.hindsight.enabled to false, or use tasks.suite "desk".',
  },
  {
    key: 'curation.hindsight.enabled',
    broken: ({ curation: k, trainer: t }) =>
      k.hindsight.enabled && (!k.pool.enabled || t.replay === 0 || t.imitationCoef === 0),
    what: 'what is relabelled is in the pool and is imitated beside the batches, and one of the two is off',
    remedy: 'Set curation.pool.enabled to true and trainer.replay above 0, or leave it out.',
  },
  {
    key: 'curation.branches.enabled',
    broken: ({ curation: c }) => c.branches.enabled && c.dynamicRollouts.max < 3,
    what: 'two rollouts of a group begin with the task, and it has no others',
    remedy: 'Set curation.dynamicRollouts.max to 3 or more, or curation.branches.enabled to false.',
  },
  {
    key: 'curation.pool.from',
    broken: (c) => c.curation.pool.from.length > 0 && !c.curation.pool.enabled,
    what: 'the pool is off',
    remedy: 'Set curation.pool.enabled to true, or leave curation.pool.from out.',
  },
];

/** Options that a policy that is only rolled out has no use for. */
const untrained: readonly Rule[] = [
  {
    key: 'warmStart.from',
    broken: (c) => !traitsOf(c.policy.kind).trained && c.warmStart.from !== undefined,
    what: 'a policy that is not trained has no checkpoints',
    remedy: 'Leave warmStart.from out, or set policy.kind to one that is trained ("embedded", "vlm").',
  },
];

/** Objectives that an engine cannot compute, or not in the place asked for, and options that would have no effect. */
const objective: readonly Rule[] = [
  {
    key: 'trainer.klBeta',
    broken: (c) => c.policy.kind === 'embedded' && c.trainer.klBeta > 0 && c.warmStart.reading.coef > 0,
    what: 'lessons that go on beside updates change what the reference of the KL term sees, too',
    remedy: 'Set warmStart.reading.coef to 0, or trainer.klBeta to 0.',
  },
  {
    key: 'trainer.klBeta',
    broken: (c) => c.trainer.remote?.loss === 'server' && c.trainer.klBeta > 0,
    what: 'the losses that an engine computes itself have no KL term',
    remedy: 'Set trainer.remote.loss to "client", or trainer.klBeta to 0.',
  },
  {
    key: 'trainer.algorithm',
    broken: (c) => c.trainer.remote?.loss === 'server' && c.trainer.algorithm === 'gspo',
    what: 'engines compute "ppo" and "cispo" themselves, not "gspo"',
    remedy: 'Set trainer.remote.loss to "client", or choose another algorithm.',
  },
  {
    key: 'trainer.reuse.enabled',
    broken: (c) => c.trainer.remote?.loss === 'server' && c.trainer.reuse.enabled,
    what: 'whether another pass is worthwhile depends on the log-probs before it, which an engine that computes the loss does not return',
    remedy: 'Set trainer.remote.loss to "client", or trainer.reuse.enabled to false.',
  },
  {
    key: 'trainer.targetKl',
    broken: (c) => c.trainer.targetKl > 0 && c.trainer.remote?.loss === 'server',
    what: 'how far the policy has moved is seen in the log-probs before a step, which an engine that computes the loss does not return',
    remedy: 'Set trainer.remote.loss to "client", or trainer.targetKl to 0.',
  },
  {
    key: 'trainer.targetKl',
    broken: ({ trainer: t }) =>
      t.targetKl > 0 && t.minibatchStates === 0 && t.epochs === 1 && !(t.reuse.enabled && t.reuse.epochs > 1),
    what: 'an update of one optimizer step has no further ones to leave out',
    remedy: 'Set trainer.minibatchStates or trainer.epochs, or trainer.targetKl to 0.',
  },
  {
    key: 'trainer.imitation',
    broken: ({ trainer: t }) => t.imitation === 'adaptive' && (t.replay === 0 || t.imitationCoef === 0),
    what: 'nothing is imitated beside a batch',
    remedy: 'Set trainer.replay and trainer.imitationCoef above 0, or trainer.imitation to "fixed".',
  },
];

/** Options that a deterministic run cannot have: its result would depend on what is faster. */
const deterministic: readonly Rule[] = (
  [
    {
      key: 'desktops.count',
      broken: (c) => c.desktops.count > 1,
      what: 'a deterministic run has one desktop',
      remedy: 'Set desktops.count to 1',
    },
    {
      key: 'policy.replicas',
      broken: (c) => c.policy.replicas > 1 || (c.policy.vlm?.endpoints.length ?? 0) > 1,
      what: 'a deterministic run has one replica',
      remedy: 'Set policy.replicas to 1 (policy.vlm.endpoints: name one server)',
    },
    {
      key: 'policy.kind',
      broken: (c) => !traitsOf(c.policy.kind).trained,
      what: 'a deterministic run trains, and this policy is not trained',
      remedy: 'Set policy.kind to "embedded" or "vlm"',
    },
    {
      key: 'rollout.regime',
      broken: (c) => c.rollout.regime !== 'batch',
      what: 'rollouts and updates of a deterministic run take turns',
      remedy: 'Set rollout.regime to "batch"',
    },
    {
      key: 'trainer.threads',
      broken: (c) => c.trainer.threads > 1,
      what: 'threads of a trainer add numbers in any order',
      remedy: 'Set trainer.threads to 1',
    },
    {
      key: 'evaluation.everyMinutes',
      broken: (c) => c.evaluation.everyMinutes > 0 && c.evaluation.episodes > 0,
      what: 'a deterministic run does not look at the clock',
      remedy: 'Set evaluation.everyMinutes to 0: it is evaluated at the start and the end',
    },
    {
      key: 'budget.minutes',
      broken: (c) => c.budget.minutes !== undefined,
      what: 'a deterministic run does not look at the clock',
      remedy: 'Set budget.updates or budget.rollouts instead of budget.minutes',
    },
  ] satisfies Rule[]
).map((r) => ({
  ...r,
  broken: (c) => c.run.deterministic && r.broken(c),
  remedy: `${r.remedy}, or leave run.deterministic out.`,
}));

/** Every rule that a run file breaks: of its kind of policy, then of every run file. */
export const violations = (c: RunConfig): readonly Violation[] =>
  [...policyRules(c), ...needs, ...untrained, ...objective, ...deterministic]
    .filter((r) => r.broken(c))
    .map(({ key, what, remedy }) => ({ key, what, remedy }));
const policyRules = (c: RunConfig): readonly Rule[] =>
  declaredPolicies().flatMap((d) => (d.kind === c.policy.kind ? d.rules : d.elsewhere) ?? []);

/** Remarks on options that are allowed and cost something that their user should know. */
export function remarks(c: RunConfig): readonly string[] {
  if (!c.trainer.remote) return [];
  const notes: string[] = [];
  if (c.run.deterministic)
    notes.push(
      'run.deterministic: the servers have to answer the same to the same request and seed; engines on a GPU that batch requests do not.',
    );
  if (c.trainer.klBeta > 0)
    notes.push(
      `trainer.klBeta is ${c.trainer.klBeta}: the engine keeps a second model, the one the run starts from, and scores every batch with it too: one more forward pass an update. Set it to 0 to save that.`,
    );
  if (c.trainer.remote.rank === 0) {
    const memory = trainingMemory(c),
      takes = memory
        ? `at least ${memory.gib} GiB (${memory.source}) where it is one GPU`
        : 'several times that of an adapter';
    notes.push(
      `trainer.remote.rank is 0: all weights are trained, which takes a lot of the GPU's memory, ${takes}, and ${WHO_ACTS}. ${FOR_A_POOL}`,
    );
  }
  return notes;
}
