import { randomBytes } from 'node:crypto';
import type { RemoteModel } from '../client.js';
import type { Carriage } from '../gradient.js';
import { bad, figure, judged, refusal, tried, unseen, type Checks, type Finding } from './checks.js';
import { apart, groupMeans, MAIN, someTokens, textOf, type Lab } from './lab.js';

/** Whether what a server samples with is what it trained, and whether the log-probs it reports are those it scores. */

/** Log-probs of the two halves of a server differ by less. */
const SAME = 0.05;

/** `needed`: that it samples, and rightly; `able`: rightly, where it does. */
export async function samplingChecks(lab: Lab, c: Carriage, checks: Checks, needed: boolean | 'able'): Promise<void> {
  const make = async (name: string, f: () => Promise<Finding>): Promise<void> => {
    const finding = await tried(f);
    checks.add(name, needed === true || (needed === 'able' && !finding.unseen), finding);
  };
  await lab.fresh(async (m) => {
    const prompt = someTokens('main'),
      versions: Float32Array[] = [];
    const seen = async (): Promise<void> => {
      versions.push((await lab.rows(m, [MAIN]))[0]!);
    };
    const train = async (): Promise<void> => {
      await lab.push(m, c, [3, 0]);
      await lab.step(m);
      await seen();
    };
    let session = '',
      earlier: Float32Array | undefined;
    const publish = (): Promise<string | undefined> =>
      refusal(async () => {
        const path = await m.saveForSampler(`probe-${randomBytes(4).toString('hex')}`, lab.signal);
        lab.saved.push(path);
        session = await lab.client.samplingSession({ path }, lab.signal);
      });
    await seen();
    await train();
    let no = await publish();
    if (no === undefined) {
      // Rollouts ask about the same prompt before and after an update: a cache that does not look at the weights is
      // filled here. A question that is refused is refused again below.
      await refusal(async () => {
        earlier = await promptRow(lab, session, prompt);
      });
      await train();
      no = await publish();
    }
    if (no !== undefined) {
      checks.add('sampling', needed === true, bad(`this server does not sample: ${no}`));
      return;
    }
    await make('adapter', () => active(lab, session, prompt, versions, earlier));
    await make('rollout-logprobs', () => reported(lab, m, session, prompt));
  });
}

const ask = (lab: Lab, session: string, seqId: number, prompt: Int32Array, promptLogprobs: boolean) =>
  lab.client.sample(
    {
      chunks: [{ type: 'encoded_text', tokens: prompt }],
      samples: 2,
      maxTokens: 12,
      temperature: 1,
      seed: seqId,
      promptLogprobs,
      from: { session, seqId },
    },
    lab.signal,
  );

/** Log-probs of a prompt's tokens but the first, nats; undefined where the server gives none. */
async function promptRow(lab: Lab, session: string, prompt: Int32Array): Promise<Float32Array | undefined> {
  const { promptLogprobs } = await ask(lab, session, 1, prompt, true);
  return promptLogprobs?.length === prompt.length ? promptLogprobs.subarray(1) : undefined;
}
/**
 * What was trained shows in the prompt; its log-probs are those of one version. `versions`: log-probs before training and
 * after each step; `earlier`: what the server said of the prompt after the first one.
 */
async function active(
  lab: Lab,
  session: string,
  prompt: Int32Array,
  versions: readonly Float32Array[],
  earlier: Float32Array | undefined,
): Promise<Finding> {
  const row = await promptRow(lab, session, prompt);
  if (!row) return unseen('the server gives no log-probs of a prompt');
  const from = (r: Float32Array): [number, number, number] =>
    versions.map((v) => Math.abs(groupMeans(v)[0] - groupMeans(r)[0])) as [number, number, number];
  const [base, before, now] = from(row),
    off = apart(row, versions[2]!);
  if (base < now) return bad('the adapter is not active: log-probs are those of the base model');
  if (before < now) {
    const [untrained, then] = earlier ? from(earlier) : [0, 0];
    // Weights that lag a step behind were those of the base model at the first question.
    return bad(
      then < untrained
        ? 'a prompt that was asked about before gets the log-probs of the weights of then: a cache does not tell weights apart'
        : 'weights for sampling are those before the last optimizer step',
    );
  }
  return judged(
    off < SAME + lab.spread,
    `weights for sampling are those just trained (log-probs within ${figure(off)} nat)`,
    `log-probs of a prompt differ by ${figure(off)} nat from those of a forward pass`,
  );
}
async function reported(lab: Lab, m: RemoteModel, session: string, prompt: Int32Array): Promise<Finding> {
  const { sequences } = await ask(lab, session, 2, prompt, false),
    differences: number[] = [];
  for (const s of sequences) {
    if (s.logprobs?.length !== s.tokens.length) return unseen('sampled tokens have no log-probs');
    if (s.tokens.length === 0) continue;
    const [row] = await lab.rows(m, [textOf(Int32Array.of(...prompt, ...s.tokens))], 1);
    differences.push(apart(s.logprobs, row!.subarray(prompt.length - 1)));
  }
  const off = differences.reduce((a, b) => a + b, 0) / Math.max(1, differences.length);
  return judged(
    off < SAME + lab.spread,
    `log-probs of sampled tokens are those of a forward pass (within ${figure(off)} nat)`,
    `log-probs of sampled tokens differ by ${figure(off)} nat from those of a forward pass`,
  );
}
