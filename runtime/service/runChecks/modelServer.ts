import { messageOf } from '../../domain/index.js';
import { orUndefined } from '../../concurrency/failures.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { counted } from '../../domain/counted.js';
import { spanOf, type CoordinateMode } from '../../policy/actions/coordinates.js';
import { imageTokens, resizeLimits } from '../../policy/actions/imageTokens.js';
import { asVllm, type Completion } from '../../policy/remote/completion.js';
import { dialectOf, type Dialect } from '../../policy/remote/dialect.js';
import { ModelServer } from '../../policy/remote/modelServer.js';
import { SPOKEN, ageWords } from '../../policy/remote/versions.js';
import { cutPrompt } from '../../policy/remote/promptRecord.js';
import type { CheckRow } from '../../protocol/types.js';
import { checkAdapters } from './adapters.js';
import { ask, wordsOf } from './ask.js';
import { flagsOf, type Flags } from './flags.js';
import { difference, firstLogprobs, longestRun, oneToken, picture } from './generation.js';
import { Table } from './table.js';
import { ANSWER_TOKENS, INSTRUCTION_TOKENS, TEXT_TOKENS, type ModelServerCheck } from './types.js';

/** Log-probs of the same request differ by less, in fp32 and in bf16 with another batch. */
const NOISE = 1e-6;
/** Time limit of asking for a server's version. */
const AGE_MS = 20_000;

/** Every check of one server; those that build on one that failed are left out. */
export async function checkModelServer(o: ModelServerCheck): Promise<CheckRow[]> {
  const table = new Table(`model server ${o.url.replace(/^https?:\/\//, '')}`);
  const served = await reach(o, table);
  if (served) {
    const first = await generate(o, served, table);
    if (first) {
      checkContext(o, served, table);
      checkTokens(o, first.completion, served, table);
      await checkSight(o, served.model, first, table);
      await checkTemperature(o, served, first, table);
    }
    if (o.training) await checkAdapters(o, o.training, served.dialect, table);
  }
  return table.rows;
}

interface Served {
  readonly model: string;
  /** Most tokens of prompt and answer, where the server says it. */
  readonly context: number | undefined;
  readonly dialect: Dialect;
  /** Which server it is and its version, as it says them. */
  readonly server: string;
}
async function reach(o: ModelServerCheck, table: Table): Promise<Served | undefined> {
  const r = await ask({ url: `${o.url}/models`, apiKey: o.apiKey, timeoutMs: 20_000 });
  if ('away' in r) {
    table.wrong('reachable', r.away, `Start the model server, and check ${o.options.url}.`);
    return undefined;
  }
  if (r.status === 401 || r.status === 403) {
    table.wrong(
      'key',
      wordsOf(r),
      `Set the key of this server in the environment variable that ${o.options.key} names.`,
    );
    return undefined;
  }
  const data = (r.json as { data?: unknown } | undefined)?.data;
  if (r.status !== 200 || !Array.isArray(data)) {
    table.wrong('reachable', `no list of models (${wordsOf(r)})`, `Check that ${o.options.url} ends in /v1.`);
    return undefined;
  }
  const models = (data as ({ id?: unknown; parent?: unknown; max_model_len?: unknown } | null)[]).flatMap((m) =>
      typeof m?.id === 'string' ? [{ ...m, id: m.id }] : [],
    ),
    dialect = dialectOf(data),
    server = await serverOf(o, dialect, table);
  table.ok('reachable', `${server}${counted(models.length, 'model')}`);
  const own = models.find((m) => m.id === o.model),
    used = own ?? models.find((m) => (m.parent ?? null) === null);
  if (!used) {
    table.wrong('model', 'it serves none', `Start it with ${o.model}.`);
    return undefined;
  }
  // Lists name a model once; a server may answer to its folder too.
  const answers = own !== undefined || (await answersAs(o, dialect));
  table.check(
    'model',
    answers,
    {
      ok: own ? own.id : `${o.model}, listed as ${used.id}`,
      not: `it serves ${used.id}, not ${o.model}; the checks go on with that`,
    },
    `Start it with ${o.model} (${flagsOf(dialect.server).name(o.model)}), or name in the run file the model it serves.`,
  );
  return {
    model: answers ? o.model : used.id,
    context: typeof used.max_model_len === 'number' ? used.max_model_len : undefined,
    dialect,
    server,
  };
}
async function answersAs(o: ModelServerCheck, { server }: Dialect): Promise<boolean> {
  // SGLang answers to every name.
  if (server === 'SGLang') return false;
  const body = oneToken(o.model, [], { alternatives: 1, temperature: 1 }),
    r = await ask({ url: `${o.url}/chat/completions`, apiKey: o.apiKey, body });
  return 'status' in r && r.status === 200;
}

/** "SGLang 0.5.23: "; empty for a server that does not say it. A row where it is older or newer than what is spoken. */
async function serverOf(o: ModelServerCheck, { server }: Dialect, table: Table): Promise<string> {
  const asked = withDeadline(AGE_MS, [], (s) => new ModelServer({ url: o.url, apiKey: o.apiKey }).dated(s)),
    dated = await orUndefined(asked, 'then its age is not known');
  if (!dated) return server === 'SGLang' ? 'SGLang: ' : '';
  if (dated.age === 'older' || dated.age === 'newer') {
    const { what, remedy } = ageWords(dated);
    if (dated.age === 'older' && o.training) table.wrong('version', what, remedy);
    else if (dated.age === 'newer') table.doubtful('version', what, remedy);
  }
  return `${dated.server} ${dated.version}: `;
}

interface First {
  readonly completion: Completion;
  readonly pictures: readonly string[];
}
/** Asks for one token after a prompt with as many pictures of the screen's size as a run sends. */
async function generate(o: ModelServerCheck, { model, dialect }: Served, table: Table): Promise<First | undefined> {
  const flags = flagsOf(dialect.server),
    pictures = await Promise.all(Array.from({ length: o.images }, (_, i) => picture(o.screen, i + 1))),
    began = performance.now(),
    c = await complete(o, model, pictures);
  if ('refused' in c) {
    const { refused } = c;
    table.wrong(
      'generation',
      `one token for ${o.images} pictures of ${o.screen.width}x${o.screen.height}: ${refused}`,
      /image|multi.?modal|mm_per_prompt/i.test(refused)
        ? `Let it take ${o.images} images a prompt (${flags.images(o.images)}), or lower the number of images in the run file.`
        : /length|context|too long|max_model_len/i.test(refused)
          ? `Give it a longer context (${flags.context(needed(o))}), or lower the number of images or the screen size.`
          : /memory|\bOOM\b/i.test(refused)
            ? `Lower the number of images or the screen size, or give the server more memory (${flags.memory}).`
            : "Look at the server's log.",
    );
    return undefined;
  }
  const seconds = (performance.now() - began) / 1000;
  table.ok('generation', `one token for ${o.images} pictures in ${seconds.toFixed(1)} s`);
  return { completion: c, pictures };
}
const alternativesOf = (o: ModelServerCheck): number => (o.training?.alternatives ?? 0) || 5;
async function complete(
  o: ModelServerCheck,
  model: string,
  pictures: readonly string[],
  temperature = 1,
): Promise<Completion | { readonly refused: string }> {
  const body = oneToken(model, pictures, { alternatives: alternativesOf(o), temperature }),
    r = await ask({ url: `${o.url}/chat/completions`, apiKey: o.apiKey, body });
  if ('away' in r) return { refused: r.away };
  const c = r.status === 200 ? (r.json as Completion | undefined) : undefined;
  return c && Array.isArray(c.choices) && c.choices.length > 0 ? asVllm(c) : { refused: wordsOf(r) };
}
/** Tokens of a step whose prompt has so much text. */
const tokensOf = (o: ModelServerCheck, text = TEXT_TOKENS): number =>
  text + o.images * imageTokens(o.screen, resizeLimits(o.coordinates, o.pixels)) + o.maxTokens;
/** Those of the last step of the longest episode: every earlier answer stays in its prompt. */
const tokensAtEnd = (o: ModelServerCheck): number =>
  tokensOf(o, Math.max(TEXT_TOKENS, INSTRUCTION_TOKENS + (o.steps - 1) * ANSWER_TOKENS));
/** Context for an episode, in whole thousands. */
const needed = (o: ModelServerCheck): number => Math.ceil(tokensAtEnd(o) / 1024) * 1024;

function checkContext(o: ModelServerCheck, { context, dialect }: Served, table: Table): void {
  if (context === undefined) return;
  const tokens = tokensOf(o),
    atEnd = tokensAtEnd(o),
    remedy = `Give it a longer context (${flagsOf(dialect.server).context(needed(o))}), or fewer images.`;
  if (context >= tokens && context < atEnd)
    table.doubtful(
      'context',
      `${context} tokens, and step ${o.steps} of an episode needs about ${atEnd}: long episodes end before, as if their steps were used up`,
      remedy,
    );
  else {
    const what = `${context} tokens, and a step needs about ${tokens}`;
    table.check('context', context >= tokens, { ok: what, not: what }, remedy);
  }
}

/** Log-probs, token ids, and the pictures as the prompt counts them. */
function checkTokens(o: ModelServerCheck, c: Completion, { dialect, server }: Served, table: Table): void {
  const flags = flagsOf(dialect.server),
    logprobs = firstLogprobs(c),
    choice = c.choices![0]!;
  table.check(
    'log-probs',
    logprobs.size > 0 && [...logprobs.values()].every(Number.isFinite),
    { ok: `of ${logprobs.size} tokens each`, not: 'none are given' },
    `Let it give log-probs (${flags.logprobs}).`,
  );
  if (!o.training) return;
  const prompt = c.prompt_token_ids,
    ids = Array.isArray(prompt) && Array.isArray(choice.token_ids);
  table.check(
    'token ids',
    ids,
    {
      ok: `${prompt?.length ?? 0} of the prompt`,
      not: `${server}no token ids of the prompt and of the answer come back, and nothing can be trained without them`,
    },
    `Use a server that answers return_token_ids: vLLM ${SPOKEN.vLLM.oldest}, SGLang ${SPOKEN.SGLang.oldest}, or newer.`,
  );
  if (ids) checkPictures(o, o.training.imageToken, prompt, flags, table);
}

function checkPictures(o: ModelServerCheck, pad: number, prompt: readonly number[], flags: Flags, table: Table): void {
  let tokens: readonly number[];
  try {
    const sent = Array.from({ length: o.images }, (_, number) => ({ number }));
    ({ tokens } = cutPrompt(prompt, pad, sent));
  } catch (e) {
    const run = longestRun(prompt);
    if (run.token !== pad && run.length > 3)
      table.wrong(
        'image token',
        `pictures are runs of ${run.token} in its prompts, not of ${pad}`,
        `Set policy.vlm.imageToken to ${run.token}.`,
      );
    else table.wrong('image token', messageOf(e), 'Check that the model takes images, and policy.vlm.imageToken.');
    return;
  }
  table.ok('image token', `${pad}, ${o.images} pictures`);
  const limits = resizeLimits(o.coordinates, o.pixels),
    expected = imageTokens(o.screen, limits),
    got = [...new Set(tokens)].join(', '),
    { width, height } = o.screen;
  if (tokens.every((t) => t === expected)) {
    table.ok('image size', `${expected} tokens for ${width}x${height}`);
    return;
  }
  const other: CoordinateMode = o.coordinates === 'relative999' ? 'qwen25' : 'relative999';
  if (tokens.every((t) => t === imageTokens(o.screen, resizeLimits(other, o.pixels)))) {
    table.wrong(
      'image size',
      `${got} tokens for ${width}x${height}: so counts ${other === 'qwen25' ? 'Qwen2.5-VL or UI-TARS 1.5' : 'Qwen3-VL'}, which does not write coordinates as ${o.coordinates}`,
      `Set policy.vlm.coordinates to ${other}, if that is the model.`,
    );
    return;
  }
  const what = `${got} tokens for ${width}x${height}, where ${o.pixels?.minPixels === undefined && o.pixels?.maxPixels === undefined ? "the model's own processor makes" : 'trainer.remote.options makes'} ${expected}`;
  if (o.coordinates === 'qwen25') {
    const span = spanOf('qwen25', o.screen, limits);
    table.wrong(
      'image size',
      `${what}: it resizes pictures to another size than ${span.width}x${span.height}, so every click would be off`,
      `Give it the pixel limits of the run, ${limits.minPixels} to ${limits.maxPixels} (${flags.pixels}), or a smaller screen; or check policy.vlm.coordinates.`,
    );
  } else
    table.doubtful(
      'image size',
      what,
      'Check policy.vlm.coordinates and the pixel limits of the server; clicks do not depend on them.',
    );
}

/** Another picture must change what is said next: a server may keep a picture's tokens and lose what it shows. */
async function checkSight(o: ModelServerCheck, model: string, first: First, table: Table): Promise<void> {
  const other = [...first.pictures.slice(0, -1), await picture(o.screen, 77)],
    changed = await complete(o, model, other),
    again = await complete(o, model, first.pictures);
  if ('refused' in changed || 'refused' in again) {
    table.wrong('images seen', 'the server failed when asked again', "Look at the server's log.");
    return;
  }
  const was = firstLogprobs(first.completion),
    by = difference(was, firstLogprobs(changed)),
    noise = difference(was, firstLogprobs(again));
  table.check(
    'images seen',
    by > 3 * noise + NOISE,
    {
      ok: `another picture moves log-probs by ${by.toPrecision(2)} (the same one by ${noise.toPrecision(1)})`,
      not: 'another picture leaves every log-prob as it was: pictures are dropped',
    },
    'Serve the model with its vision part; a server or router in between may pass on text alone.',
  );
}

/** Recorded log-probs must be of what was sampled from, temperature included. */
async function checkTemperature(
  o: ModelServerCheck,
  { model, dialect }: Served,
  first: First,
  table: Table,
): Promise<void> {
  if (!o.training || o.temperature === 1) return;
  const c = await complete(o, model, first.pictures, o.temperature);
  if ('refused' in c) return;
  const by = difference(firstLogprobs(first.completion), firstLogprobs(c));
  table.check(
    'temperature',
    by > 1e-3,
    {
      ok: `log-probs are those at temperature ${o.temperature}`,
      not: `log-probs do not change with the temperature, so those recorded at ${o.temperature} are not of what is sampled`,
    },
    `${flagsOf(dialect.server).temperature}, or set policy.temperature to 1.`,
  );
}
