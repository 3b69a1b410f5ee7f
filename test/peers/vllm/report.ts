import type { FolderFigures } from './folder.js';
import type { FurthestFigures } from './furthest.js';
import { MERGED_APART, type MergedFigures } from './merged.js';
import type { RecordFigures } from './records.js';
import { APART, type Matches } from './scores.js';
import type { PublishFigures, Refusal, WireFigures } from './stages.js';

/** What was measured, and whether it is what it should be. */

export interface Figures {
  readonly date: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly versions: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly model: Readonly<Record<string, string | number>>;
  readonly servers: { readonly count: number; readonly memory_gb: number };
  readonly clients: number;
  readonly seconds: number;
  readonly images: { readonly same_image: number; readonly other_image: number };
  readonly folder: FolderFigures;
  readonly records: RecordFigures;
  readonly publishing: PublishFigures;
  readonly damaged: readonly Refusal[];
  readonly wire: WireFigures;
  readonly left_on_servers: { readonly newest: string; readonly adapters: readonly (readonly string[])[] };
  readonly matches: Matches;
  readonly furthest: readonly FurthestFigures[];
  readonly merged: MergedFigures;
}
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

export function summary({ matches, ...f }: Figures): Omit<Figures, 'matches'> & {
  readonly ok: boolean;
  readonly logprob_max_difference: number;
  readonly failed_calls_during_publish: number;
  readonly stale_versions: number;
  readonly checks: readonly Check[];
  readonly logprobs: object;
} {
  const checks = checksOf({ matches, ...f }),
    { most, mean, tokens, answers, toldApart, beyond, mostProbableBeyond } = matches;
  return {
    ok: checks.every((c) => c.ok),
    logprob_max_difference: rounded(most),
    failed_calls_during_publish: f.publishing.failed_calls_during_publish,
    stale_versions: matches.stale,
    checks,
    logprobs: {
      answers,
      tokens,
      mean_difference: rounded(mean),
      tokens_beyond_goal: beyond,
      most_probable_of_them: mostProbableBeyond,
      answers_no_other_version_gives: toldApart,
    },
    ...f,
  };
}
const rounded = (x: number): number => Number(x.toPrecision(2));

/** The bar is for what was answered under load; beside it, what the same request has alone. */
function askedAgain([most]: readonly FurthestFigures[]): string {
  const alone = most?.again.alone_uncached ?? null;
  return alone === null
    ? 'asked again alone, the furthest token is not drawn again'
    : `asked again alone, the furthest one is ${rounded(alone)} away`;
}
function checksOf(f: Figures): Check[] {
  const { records: r, publishing: p, wire: w, matches: m, images, left_on_servers: left, merged: x } = f;
  return [
    {
      name: 'token ids of prompts and answers are those vLLM reports',
      ok: r.prompt_ids_differ + r.answer_ids_differ + r.logprobs_differ === 0,
      detail: `${r.answers} answers, ${r.prompt_tokens} prompt tokens`,
    },
    {
      name: 'images are the bytes that were sent, with the tokens that vLLM and the engine both count',
      ok: r.image_bytes_differ === 0 && r.most_images_in_a_prompt > 1,
      detail: `${r.images_shown} images, up to ${r.most_images_in_a_prompt} in a prompt`,
    },
    {
      name: 'doctor --run tells a folder that the server has from one that it does not have',
      ok: f.folder.ok,
      detail: `${f.folder.seen}; ${f.folder.unseen}`,
    },
    {
      name: 'images are seen',
      ok: images.other_image > 1e-3 && images.same_image < 1e-5,
      detail: `another image moves a log-prob by ${rounded(images.other_image)}, the same one again by ${rounded(images.same_image)}`,
    },
    {
      name: 'log-probs are those of the trainer with the same adapter',
      ok: m.most <= APART,
      detail: `${m.tokens} tokens: largest difference ${rounded(m.most)}, mean ${rounded(m.mean)}; ${m.beyond} beyond ${APART}; ${askedAgain(f.furthest)}`,
    },
    {
      name: 'a model merged by export-model says what its adapter says',
      ok:
        x.most <= MERGED_APART &&
        x.unlike_answers <= x.answers / 10 &&
        (x.other_version > 10 * MERGED_APART || x.unlike_other_version > x.answers / 2),
      detail: `${x.answers} answers, ${x.tokens} tokens: largest difference ${rounded(x.most)} (at most ${MERGED_APART}), mean ${rounded(x.mean)}; the first version's adapter is ${rounded(x.other_version)} away and says ${x.unlike_other_version} answers otherwise`,
    },
    {
      name: 'no call fails while adapters are published',
      ok: p.failed_calls + w.decisions_refused === 0,
      detail: `${f.clients} clients, ${p.publishes} publishes, ${p.calls} calls, ${p.calls_during_publish} of them during a publish; ${w.decisions_refused} requests refused${w.refusals.map((r) => `: ${r}`).join('')}`,
    },
    {
      name: 'no answer is of other weights than it says',
      ok: m.stale === 0 && p.outdated_answers === 0,
      detail: `${m.answers} answers; the versions before and after would not have given ${m.toldApart} of them`,
    },
    {
      name: 'capacity during a publish',
      ok: p.capacity_during_publish >= 1 - 1 / f.servers.count,
      detail: `${p.capacity_during_publish} of ${f.servers.count} servers`,
    },
    {
      name: 'a name and a path for each version',
      ok: w.names_used_twice + w.paths_used_twice === 0,
      detail: `${w.adapters_loaded} adapters loaded, ${w.loaded_again} of them again from other files, as what was there had been refused`,
    },
    {
      name: 'an adapter is asked for a token before it is used',
      ok: w.used_before_their_proof === 0,
      detail: `${w.adapters_loaded} adapters`,
    },
    {
      name: 'adapters are unloaded after their last call and before their files go',
      ok: w.unloads_with_calls_in_flight + w.unloads_after_their_files === 0,
      detail: `${w.unloads} unloads; left at the end: ${left.adapters.flat().join(', ')}`,
    },
    ...f.damaged.map((d) => ({
      name: `${d.damage}: found, rolled back, published again as whole files, and calls go on`,
      ok: d.found && d.rolled_back && d.published_again && d.failed_calls + d.lost_replicas === 0,
      detail: d.said,
    })),
  ];
}
