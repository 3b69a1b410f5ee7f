import { FOR_A_POOL, WHO_ACTS } from '../../config/index.js';
import { ModelServer } from '../../policy/remote/modelServer.js';
import { besideOf, type Dialect } from '../../policy/remote/dialect.js';
import { toRunError } from '../../domain/index.js';
import { withDeadline } from '../../concurrency/deadline.js';
import { checkSharedFolder, type AskToLoad } from './adapterFolder.js';
import { ask, wordsOf, type Answered } from './ask.js';
import { flagsOf } from './flags.js';
import type { Table } from './table.js';
import type { ModelServerCheck } from './types.js';

/** An adapter name that nobody uses: a server that can load adapters says that it is not there. */
const NOBODY = 'dart-studio-doctor-none';
const UNLOAD_MS = 20_000;

type Training = NonNullable<ModelServerCheck['training']>;

/**
 * Whether a server takes adapters while it runs. No adapter is at hand before a run, so it is asked for one that does
 * not exist: the words of its refusal tell what is missing. That an adapter really acts is checked at every publish.
 */
export async function checkAdapters(o: ModelServerCheck, t: Training, dialect: Dialect, table: Table): Promise<void> {
  if (t.rank === 0 && !t.same) {
    table.wrong(
      'weights',
      `trainer.remote.rank is 0, so all weights are trained, and this is not the engine that trains them: ${WHO_ACTS}`,
      FOR_A_POOL,
    );
    return;
  }
  // The engine knows its own weights by such paths; to another server they are folders.
  const path = t.same ? `tinker://${NOBODY}/sampler_weights/none` : `${t.adapters ?? ''}/${NOBODY}`,
    where = dialect.adapters === 'beside' ? besideOf(o.url) : o.url,
    load = loading(where, o.apiKey),
    r = await load(path);
  if ('away' in r) {
    table.wrong('adapters', r.away, 'Look at the log of the server: asking for an adapter must not end it.');
    return;
  }
  if (r.status === 200) {
    table.wrong(
      'adapters',
      'it says that it loaded an adapter that does not exist',
      'Use a server that loads the adapters it is given; behind this one the base model would always act.',
    );
    return;
  }
  if (!refusesWell(o, t, dialect, r, table)) return;
  table.ok('adapters', 'can be loaded while it runs; whether one acts is checked at every publish');
  // How the others refuse an adapter that they can read is not known.
  if (t.shared && dialect.server === 'vLLM' && !t.same) await checkSharedFolder(t.shared, load, table);
  if (dialect.scores === 'together') await checkScores(o, table);
}

/** Asks a server to load an adapter; what it loads after all, or may load after its time, does not stay. */
const loading =
  (where: string, apiKey: string | undefined): AskToLoad =>
  async (folder) => {
    const r = await ask({
      url: `${where}/load_lora_adapter`,
      apiKey,
      body: { lora_name: NOBODY, lora_path: folder },
    });
    if ('away' in r || r.status === 200)
      await ask({
        url: `${where}/unload_lora_adapter`,
        apiKey,
        body: { lora_name: NOBODY },
        timeoutMs: UNLOAD_MS,
      });
    return r;
  };

/** Whether it only says that there is no such adapter; a row is written where it says more. */
function refusesWell(o: ModelServerCheck, t: Training, dialect: Dialect, r: Answered, table: Table): boolean {
  const said = wordsOf(r),
    start = flagsOf(dialect.server).adapters(Math.max(16, t.rank)),
    wrong = (what: string, remedy: string): false => {
      table.wrong('adapters', what, remedy);
      return false;
    };
  if (r.status === 405 || (r.status === 404 && /^404(: *not found\.?)?$/i.test(said)))
    return wrong(
      `it cannot load adapters while it runs (${said})`,
      dialect.server === 'vLLM'
        ? `${start}, and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment.`
        : `${start}, without a router before it.`,
    );
  if (/lora[^.]{0,40}(not|isn't) enabled|enable[-_ ]lora/i.test(said)) return wrong(said, `${start}.`);
  if (r.status === 401 || r.status === 403)
    return wrong(
      said,
      `Let the key of ${o.options.key} load adapters (SGLang: that of --admin-api-key), and the server read their folder (this project's engine: --adapter-root FOLDER).`,
    );
  // A server with several data-parallel replicas fails on an assertion.
  if (dialect.server === 'SGLang' && r.status >= 500)
    return wrong(
      `it fails when it is asked for an adapter (${said})`,
      'Start it without --dp-size (one server for each replica, all in policy.vlm.endpoints); its log says more.',
    );
  return true;
}

/** A busy server is waited for so long. */
const SCORE_MS = 30_000;

/** An adapter that does nothing is found by what the server makes of known tokens: it must say that. */
async function checkScores(o: ModelServerCheck, table: Table): Promise<void> {
  const server = new ModelServer({ url: o.url, apiKey: o.apiKey }),
    known = { prompt: Int32Array.of(1, 2), answer: Int32Array.of(3) };
  try {
    await withDeadline(SCORE_MS, [], (signal) => server.score(known, undefined, signal));
    table.ok('scores', 'of known tokens are given');
  } catch (e) {
    const { message, remedy } = toRunError(e);
    table.wrong('scores', message, remedy);
  }
}
