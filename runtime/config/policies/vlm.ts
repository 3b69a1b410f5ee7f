import type { RunConfig } from '../schema.js';
import { engineOptions, vlmOptions } from '../remoteOptions.js';
import type { PolicyDeclaration, Rule } from './types.js';

/** The run starts its engine and ends it; nobody gave an address of one. */
export const startsEngine = ({ policy, trainer }: RunConfig): boolean =>
  policy.kind === 'vlm' && trainer.remote !== undefined && trainer.remote.url === undefined;

const needs: readonly Rule[] = [
  {
    key: 'policy.vlm',
    broken: (c) => !c.policy.vlm,
    what: 'required because policy.kind is "vlm"',
    remedy:
      'Set policy.vlm.model, and policy.vlm.endpoints where the engine is not to act itself, or start from a preset such as "ui-tars-7b".',
  },
  {
    key: 'trainer.remote',
    broken: (c) => !c.trainer.remote,
    what: 'required because policy.kind is "vlm": such a model is trained by an engine',
    remedy:
      'Set trainer.remote.engine to "auto", or trainer.remote.url to one that runs; to roll a model out without training it, use policy.kind "openai".',
  },
  {
    key: 'policy.vlm.endpoints',
    broken: (c) => c.trainer.remote?.url !== undefined && c.policy.vlm?.endpoints.length === 0,
    what: 'required because trainer.remote.url names an engine',
    remedy: 'List the servers that act with the model; the engine of DART Studio does both (its address with /v1).',
  },
];

/** Whether options say what only the engine needs to know. A run folder's own file has all defaults. */
function tellsEngine(o: NonNullable<RunConfig['trainer']['remote']>['options']): boolean {
  if (o === undefined) return false;
  const { minPixels: _, maxPixels: __, ...rest } = o,
    usual: Readonly<Record<string, unknown>> = engineOptions.unwrap().parse({});
  return Object.entries(rest).some(([key, value]) => value !== usual[key]);
}

/** Rules for options of an engine that the run starts, and of one that runs already. */
const engine: readonly Rule[] = [
  {
    key: 'trainer.remote.apiKeyEnv',
    broken: (c) => startsEngine(c) && c.trainer.remote?.apiKeyEnv !== undefined,
    what: 'the engine that the run starts has a key of its own',
    remedy: 'Leave trainer.remote.apiKeyEnv out, or give the address of your engine in trainer.remote.url.',
  },
  {
    key: 'policy.vlm.adapters',
    broken: (c) => startsEngine(c) && c.policy.vlm?.adapters !== undefined,
    what: 'the engine that the run starts writes adapters in the run folder',
    remedy: 'Leave policy.vlm.adapters out: servers in policy.vlm.endpoints are told where adapters are.',
  },
  {
    key: 'policy.vlm.apiKeyEnv',
    broken: (c) => startsEngine(c) && c.policy.vlm?.endpoints.length === 0 && c.policy.vlm.apiKeyEnv !== undefined,
    what: 'the engine that the run starts has a key of its own',
    remedy: 'Leave policy.vlm.apiKeyEnv out, or name the servers it is for in policy.vlm.endpoints.',
  },
  {
    key: 'trainer.remote.options',
    broken: (c) => c.trainer.remote?.url !== undefined && tellsEngine(c.trainer.remote.options),
    what: 'they are for an engine that the run starts, and trainer.remote.url names one that is already running',
    remedy:
      'Leave them out and give them to that engine, or leave trainer.remote.url out. Only minPixels and maxPixels may stay: they must say what that engine was started with, since clicks are read by them.',
  },
];

/** Options that it has no use for, or that its engine cannot compute. */
const unused: readonly Rule[] = [
  {
    key: 'warmStart.reading',
    broken: (c) => c.warmStart.reading.steps > 0 || c.warmStart.reading.screens > 0,
    what: 'a vision-language model can read already; only the embedded policy takes reading lessons',
    remedy: 'Leave warmStart.reading out. The preset "quickstart" has it; start from "ui-tars-7b" or "qwen3-vl-8b".',
  },
  {
    key: 'trainer.entropyBonus',
    broken: (c) => c.trainer.entropyBonus > 0,
    what: 'an engine gives the log-probs of the tokens trained on, and the entropy needs those of all tokens',
    remedy: 'Set trainer.entropyBonus to 0.',
  },
  {
    key: 'trainer.reuse.epochs',
    broken: (c) => c.trainer.reuse.enabled && c.trainer.reuse.epochs < c.trainer.epochs,
    what: 'fewer passes in total than trainer.epochs makes',
    remedy: 'Set trainer.reuse.epochs to at least trainer.epochs.',
  },
];

export const VLM: PolicyDeclaration = {
  kind: 'vlm',
  says: 'a vision-language model, trained by an engine of your choice (`trainer.remote`)',
  traits: { trained: true, processes: false, onnx: false, types: 'text', random: false, midway: false, chat: true },
  options: vlmOptions,
  // No server gives the entropy's gradient.
  defaults: { trainer: { entropyBonus: 0 } },
  rules: [...needs, ...engine, ...unused],
  elsewhere: [
    {
      key: 'policy.vlm',
      broken: (c) => c.policy.vlm !== undefined,
      what: 'only a policy of kind "vlm" has it',
      remedy: 'Set policy.kind to "vlm", or leave policy.vlm out.',
    },
    {
      key: 'trainer.remote',
      broken: (c) => c.trainer.remote !== undefined,
      what: 'only a policy of kind "vlm" is trained by an engine',
      remedy: 'Set policy.kind to "vlm", or leave trainer.remote out.',
    },
  ],
};
