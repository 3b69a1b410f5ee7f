import { describe, expect, it } from 'vitest';
import { jsonSchema } from '../../../runtime/config/index.js';

interface Schema {
  readonly type?: string;
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}
/** Every option whose value is a text of the writer's choice, by its path. */
function texts(s: Schema, at = ''): string[] {
  const own = s.type === 'string' && s.enum === undefined && s.const === undefined ? [at] : [],
    more = typeof s.additionalProperties === 'object' ? [s.additionalProperties] : [];
  return [
    ...own,
    ...Object.entries(s.properties ?? {}).flatMap(([k, v]) => texts(v, at === '' ? k : `${at}.${k}`)),
    ...more.flatMap((v) => texts(v, `${at}.*`)),
    ...(s.items ? texts(s.items, `${at}[]`) : []),
    ...[...(s.anyOf ?? []), ...(s.oneOf ?? [])].flatMap((v) => texts(v, at)),
  ];
}

/** What each is. A program, a command or a module of this machine may never be one of them. */
const KNOWN = {
  'a name within a run': ['name', 'tasks.families[]', 'policy.vlm.prompt'],
  'a folder that is read': ['tasks.dir', 'tasks.assets', 'curation.pool.from[]', 'warmStart.from'],
  'a folder that is written': ['store.dir', 'store.tensorboard.dir', 'policy.vlm.adapters'],
  'a layer that no run builds, only `desktop build --image-extra`': ['desktops.imageExtra'],
  'an image of desktops': ['desktops.image', 'desktops.kubernetes.image'],
  'an address': [
    'desktops.hosts[].host',
    'desktops.osworld.servers[]',
    'policy.vlm.endpoints[]',
    'policy.openai.baseUrls[]',
    'trainer.remote.url',
  ],
  'the name of an environment variable, which must be set apart': [
    'policy.vlm.apiKeyEnv',
    'policy.openai.apiKeyEnv',
    'trainer.remote.apiKeyEnv',
    'desktops.osworld.tokenEnv',
  ],
  'a name on a server': ['policy.vlm.model', 'policy.openai.model', 'trainer.remote.options.device'],
  'a name or an amount in a cluster': [
    'namespace',
    'pullSecret',
    'requests.cpu',
    'requests.memory',
    'nodeSelector.*',
    'tolerations[].key',
    'tolerations[].value',
    'runtimeClass',
    'priorityClass',
  ].map((k) => `desktops.kubernetes.${k}`),
  'the name of a font inside a desktop': ['warmStart.reading.fonts[]'],
  'for editors': ['$schema'],
};

describe('the texts of a run file', () => {
  it('are names, folders and addresses: none of them is a program of the host', () => {
    // A new one is told what it is here, and is never what the host runs (SECURITY.md).
    expect([...new Set(texts(jsonSchema() as Schema))].sort()).toEqual(Object.values(KNOWN).flat().sort());
  });
});
