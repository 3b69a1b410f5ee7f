import { messageOf } from '../../domain/index.js';
import type { CheckRow } from '../../protocol/types.js';
import { TrainingHttp } from '../../trainer/remote/http.js';
import type { ProbeScreen } from '../../trainer/remote/probe.js';
import { PROTOCOL, identityOf, identityWords } from '../../trainer/remote/skew.js';
import { capabilities, clientConfig, encodeRequest } from '../../trainer/remote/wire/index.js';
import { ask, wordsOf, type Answered } from './ask.js';
import { Table } from './table.js';

/** An engine that trains, and what a run will want of it. */
export interface TrainingServerCheck {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly model: string;
  /** The run's screen, and the tokens that it may have there. */
  readonly screen: Pick<ProbeScreen, 'size' | 'tokens'>;
}
const TIMEOUT_MS = 20_000;

/**
 * Whether an engine is there, lets us in, knows the model, and what it speaks. That its gradients are right, and how
 * many tokens it makes of a picture, is the probe's to say (`engine probe`): a pass needs a model, which takes memory
 * there, and for which a server that holds one has no room while a run trains.
 */
export async function checkTrainingServer(o: TrainingServerCheck): Promise<CheckRow[]> {
  const table = new Table(`engine ${o.url.replace(/^https?:\/\//, '')}`);
  let base: string;
  try {
    ({ base } = new TrainingHttp({ url: o.url }));
  } catch (e) {
    table.wrong('reachable', messageOf(e), 'Give trainer.remote.url as http://HOST:PORT or https://HOST.');
    return table.rows;
  }
  if (!(await healthy(base, o, table))) return table.rows;
  const config = await letIn(base, o, table);
  if (!config) return table.rows;
  await checkModel(base, o, table);
  await checkLanguage(base, o, config, table);
  leaveToProbe(o, table);
  return table.rows;
}

async function healthy(base: string, o: TrainingServerCheck, table: Table): Promise<boolean> {
  const r = await ask({ url: `${base}/healthz`, apiKey: o.apiKey, timeoutMs: TIMEOUT_MS });
  if ('away' in r) {
    table.wrong(
      'reachable',
      r.away,
      `Start the engine (dart-studio engine serve --model ${o.model}), and check trainer.remote.url.`,
    );
    return false;
  }
  if (r.status === 401 || r.status === 403) return refusesKey(r, table);
  if (r.status === 404) {
    table.wrong(
      'reachable',
      'no Tinker-protocol server answers there',
      'Check trainer.remote.url: its host and port alone, or ending in /api/v1.',
    );
    return false;
  }
  table.check(
    'health',
    r.status === 200,
    { ok: 'it reports that it is healthy', not: wordsOf(r) },
    "Check the engine's log, and restart it: training continues from its last checkpoint.",
  );
  return r.status === 200;
}
function refusesKey(r: Answered, table: Table): false {
  table.wrong(
    'key',
    wordsOf(r),
    'Set the key of the engine in the environment variable that trainer.remote.apiKeyEnv names.',
  );
  return false;
}

interface Config {
  readonly proto: boolean | undefined;
  readonly zstd: boolean;
}
/** The server's settings for clients; an older one has no such page. */
async function letIn(base: string, o: TrainingServerCheck, table: Table): Promise<Config | undefined> {
  const r = await ask({
    url: `${base}/client/config`,
    apiKey: o.apiKey,
    body: { sdk_version: '0.38.0' },
    timeoutMs: TIMEOUT_MS,
  });
  if ('away' in r) {
    table.wrong('session', r.away, "Look at the engine's log.");
    return undefined;
  }
  if (r.status === 401 || r.status === 403) {
    refusesKey(r, table);
    return undefined;
  }
  const said = r.status === 200 ? clientConfig.safeParse(r.json) : undefined;
  if (r.status >= 500 || said?.success === false) {
    table.wrong(
      'session',
      `client/config was answered ${wordsOf(r)}; ${await identity(o)}`,
      `Look at the engine's log, and use one that speaks ${PROTOCOL}.`,
    );
    return undefined;
  }
  table.ok('key', o.apiKey === undefined ? 'none is asked for' : 'is taken');
  return { proto: said?.data?.proto_write_fwdbwd, zstd: said?.data?.proto_compress_fwdbwd ?? false };
}

const identity = async (o: TrainingServerCheck): Promise<string> => {
  const words = identityWords(await identityOf(new TrainingHttp({ url: o.url, apiKey: o.apiKey })));
  return words.charAt(0).toLowerCase() + words.slice(1);
};

async function checkModel(base: string, o: TrainingServerCheck, table: Table): Promise<void> {
  const r = await ask({ url: `${base}/get_server_capabilities`, apiKey: o.apiKey, timeoutMs: TIMEOUT_MS }),
    said = 'away' in r || r.status !== 200 ? undefined : capabilities.safeParse(r.json);
  const names = said?.success ? said.data.supported_models.flatMap((m) => (m.model_name ? [m.model_name] : [])) : [];
  if (names.length === 0)
    table.doubtful(
      'model',
      'it does not say which models it trains',
      `The first update shows whether it trains ${o.model}.`,
    );
  else if (names.includes(o.model)) table.ok('model', `trains ${o.model}`);
  else
    table.wrong(
      'model',
      `it trains ${names.slice(0, 5).join(', ')}${names.length > 5 ? ` and ${names.length - 5} more` : ''}, not ${o.model}`,
      `Start it with that model (dart-studio engine serve --model ${o.model}), or set policy.vlm.model to one of its own.`,
    );
}

/** A pass over nothing for a model that is not there: refused either way, and only one refusal is about the language. */
async function checkLanguage(base: string, o: TrainingServerCheck, config: Config, table: Table): Promise<void> {
  if (config.proto === false) {
    table.ok('language', 'JSON, as it says itself');
    return;
  }
  const body = encodeRequest({
      modelId: 'dart-studio-doctor',
      seqId: 1,
      data: [],
      lossFn: 'cross_entropy',
      forwardOnly: true,
    }),
    r = await ask({ url: `${base}/forward_backward`, apiKey: o.apiKey, body, timeoutMs: TIMEOUT_MS });
  if ('away' in r) table.wrong('language', r.away, "Look at the engine's log.");
  else if (r.status === 415) table.ok('language', 'JSON: protobuf is refused, and the run falls back');
  else if (r.status === 422)
    table.wrong(
      'language',
      `it cannot read protobuf and does not say so with 415 (${wordsOf(r)}); ${await identity(o)}`,
      `Use one that speaks ${PROTOCOL}: with protobuf, or with proto_write_fwdbwd: false in its client/config.`,
    );
  else table.ok('language', `protobuf${config.zstd ? ', compressed with zstd' : ''}`);
}

/** Says what nobody has looked at yet. */
function leaveToProbe({ screen: { size, tokens } }: TrainingServerCheck, table: Table): void {
  table.ok(
    'left to the probe',
    `not looked at here: gradients, and the tokens of a picture (${tokens[0]} for ${size.width}x${size.height}); the probe measures both as the run starts, before anything is rolled out`,
  );
}
