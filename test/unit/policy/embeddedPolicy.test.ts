import { describe, expect, it } from 'vitest';
import type { Action, EncodedState, ReplicaId, RolloutId } from '../../../runtime/domain/index.js';
import { GLYPH_SPEC, headOffsets, headSizes, id } from '../../../runtime/domain/index.js';
import { encodeActions, stateKey } from '../../../runtime/policy/embedded/codec.js';
import { embeddedPolicy } from '../../../runtime/policy/embedded/embeddedPolicy.js';
import type { DecisionPool, ReplicaRequest } from '../../../runtime/policy/types.js';
import { frameOf } from '../../helpers/policy/frames.js';
import { encodeFrame } from '../../helpers/policy/encodeFrame.js';

const spec = GLYPH_SPEC,
  off = headOffsets(spec);
const never = new AbortController().signal;
const screen = { width: 640, height: 400 };
const instruction = 'Type "hello" and "bye"';

/** Plays a list of choices and keeps what it was asked; states are copied, as a process boundary would. */
function scripted(
  choices: number[][],
): DecisionPool & { asked: { request: ReplicaRequest; state: EncodedState; session: string }[]; ended: string[] } {
  return {
    asked: [],
    ended: [],
    async decide(request, { session }) {
      const { obs, instruction: i, history } = request.state;
      this.asked.push({
        request,
        session,
        state: { obs: obs.slice(), instruction: i.slice(), history: history.slice() },
      });
      const c = Int32Array.from(choices[this.asked.length - 1]!);
      return {
        replica: id<ReplicaId>('r1'),
        queueMs: 2,
        answer: {
          choices: c,
          logprobs: new Float32Array(c.length).fill(-1),
          entropies: new Float32Array(c.length).fill(0.5),
          version: 4,
          computeMs: 3,
          alternatives: [[{ choice: c[0]!, probability: 0.5 }]],
        },
      };
    },
    end(s) {
      this.ended.push(s);
    },
  };
}
const frames = [0, 1, 2, 3, 4, 5].map((k) => frameOf(640, 400, (x, y) => [(x + k * 37) & 255, y & 255, k]));

describe('embedded policy', () => {
  it('sees online exactly what training samples of the stored trajectory see', async () => {
    const key = spec.types.indexOf('key'),
      type = spec.types.indexOf('type');
    const script = [
      [0, off.cell + 41],
      [type, off.text + 1],
      [key, off.key + 2],
      [3, off.cell + 7, off.cell2 + 9],
      [spec.types.indexOf('scroll_down'), off.cell + 999],
      [spec.types.indexOf('finished')],
    ];
    const pool = scripted(script);
    const session = embeddedPolicy(spec, pool).open({
      rollout: id<RolloutId>('r9'),
      instruction,
      screen,
      sampling: { greedy: false, temperature: 1, seed: 3 },
    });
    const steps: { actions: readonly Action[] }[] = [],
      choices: number[][] = [];
    for (const f of frames) {
      const d = await session.decide(f, never);
      const offline = encodeFrame(spec, f, instruction, steps);
      expect(stateKey(pool.asked.at(-1)!.state)).toBe(stateKey(offline));
      expect(encodeActions(spec, screen, instruction, d.actions)).toEqual(d.tokens!.ids);
      choices.push(Array.from(d.tokens!.choices!));
      steps.push({ actions: d.actions });
    }
    session.close();
    // Of a text it could copy the four tokens of the instruction, not as many as an instruction may have.
    const { type: types, cell, cell2, key: keys } = headSizes(spec);
    expect(choices).toEqual([
      [types, cell],
      [types, 4 + spec.phrases.length],
      [types, keys],
      [types, cell, cell2],
      [types, cell],
      [types],
    ]);
    expect(pool.ended).toEqual(['r9']);
    expect(new Set(pool.asked.map((a) => a.request.seed)).size).toBe(6);
    expect(pool.asked[0]).toMatchObject({ session: 'r9', request: { greedy: false, temperature: 1, copyable: 4 } });
  });

  it('counts what somebody else did as a step, online and offline', async () => {
    const pool = scripted([[0, off.cell]]);
    const session = embeddedPolicy(spec, pool).open({
      rollout: id<RolloutId>('r'),
      instruction,
      screen,
      sampling: { greedy: true, temperature: 1, seed: 0 },
    });
    const human: Action[] = [{ type: 'click', at: { x: 100, y: 100 } }];
    session.acted(human);
    await session.decide(frames[0]!, never);
    expect(stateKey(pool.asked[0]!.state)).toBe(
      stateKey(encodeFrame(spec, frames[0]!, instruction, [{ actions: human }])),
    );
  });

  it('decodes the decision and names the alternatives', async () => {
    const pool = scripted([[spec.types.indexOf('type_enter'), off.text + 1]]);
    const session = embeddedPolicy(spec, pool).open({
      rollout: id<RolloutId>('r'),
      instruction,
      screen,
      sampling: { greedy: true, temperature: 1, seed: 0 },
    });
    expect(await session.decide(frames[0]!, never)).toMatchObject({
      actions: [{ type: 'type', text: 'hello\n' }],
      version: 4,
      replica: 'r1',
      queueMs: 2,
      computeMs: 3,
      alternatives: [[{ label: 'type_enter', probability: 0.5 }]],
    });
  });

  it('does not take a screen of another size', async () => {
    const session = embeddedPolicy(spec, scripted([[0, off.cell]])).open({
      rollout: id<RolloutId>('r'),
      instruction,
      screen,
      sampling: { greedy: true, temperature: 1, seed: 0 },
    });
    await expect(
      session.decide(
        frameOf(320, 200, () => [0, 0, 0]),
        never,
      ),
    ).rejects.toMatchObject({ kind: 'desktop.lost' });
  });

  it('gives the same seed the same stream of decisions', async () => {
    const seeds = async (seed: number): Promise<number[]> => {
      const pool = scripted([
        [0, off.cell],
        [0, off.cell],
      ]);
      const s = embeddedPolicy(spec, pool).open({
        rollout: id<RolloutId>('r'),
        instruction,
        screen,
        sampling: { greedy: false, temperature: 1, seed },
      });
      await s.decide(frames[0]!, never);
      await s.decide(frames[1]!, never);
      return pool.asked.map((a) => a.request.seed);
    };
    expect(await seeds(1)).toEqual(await seeds(1));
    expect(await seeds(1)).not.toEqual(await seeds(2));
  });
});
