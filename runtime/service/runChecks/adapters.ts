import { FOR_A_POOL, WHO_ACTS } from '../../config/index.js';
import { ask, wordsOf } from './ask.js';
import type { Table } from './table.js';
import type { ModelServerCheck } from './types.js';

/** Nothing has this name: a server that can load adapters says that it is not there. */
const NOBODY = 'dart-studio-doctor-none';

/**
 * Whether a server takes adapters while it runs. No adapter is at hand before a run, so it is asked for one that does
 * not exist: the words of its refusal tell what is missing. That an adapter really acts is checked at every publish.
 */
export async function checkAdapters(
  o: ModelServerCheck,
  t: NonNullable<ModelServerCheck['training']>,
  table: Table,
): Promise<void> {
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
    body = { lora_name: NOBODY, lora_path: path },
    r = await ask({ url: `${o.url}/load_lora_adapter`, apiKey: o.apiKey, body });
  if ('away' in r) {
    table.wrong('adapters', r.away, 'Look at the log of the server: asking for an adapter must not end it.');
    return;
  }
  if (r.status === 200) {
    await ask({ url: `${o.url}/unload_lora_adapter`, apiKey: o.apiKey, body: { lora_name: NOBODY } });
    table.wrong(
      'adapters',
      'it says that it loaded an adapter that does not exist',
      'Use a server that loads the adapters it is given; behind this one the base model would always act.',
    );
    return;
  }
  const said = wordsOf(r);
  if (r.status === 405 || (r.status === 404 && /^404(: *not found\.?)?$/i.test(said)))
    table.wrong(
      'adapters',
      `it cannot load adapters while it runs (${said})`,
      'Start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its environment and --enable-lora --max-loras 2 --max-lora-rank ' +
        `${Math.max(16, t.rank)}.`,
    );
  else if (/lora[^.]{0,40}(not|isn't) enabled|enable[-_ ]lora/i.test(said))
    table.wrong(
      'adapters',
      said,
      `Start vLLM with --enable-lora --max-loras 2 --max-lora-rank ${Math.max(16, t.rank)}.`,
    );
  else if (r.status === 401 || r.status === 403)
    table.wrong(
      'adapters',
      said,
      `Let the key of ${o.options.key} load adapters, and the server read their folder (this project's engine: --adapter-root FOLDER).`,
    );
  else table.ok('adapters', 'can be loaded while it runs; whether one acts is checked at every publish');
}
