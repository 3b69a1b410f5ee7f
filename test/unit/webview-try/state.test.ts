import { describe, expect, it } from 'vitest';
import type { EvalPoint, StepView, TryPolicy } from '../../../runtime/protocol/types.js';
import type { InputOf } from '../../../webview/protocol.js';
import {
  askedOf,
  begin,
  bestOf,
  emptyForm,
  hottest,
  paramsOf,
  reduce,
  shownStep,
  versionOptions,
  type Message,
  type State,
} from '../../../webview/try/state.js';

const input: InputOf<'try'> = { kind: 'try', roots: ['/runs'], files: [], base: '/runs', run: '/runs/a' };
const policies: TryPolicy[] = [
  { run: '/runs/b', name: 'b', kind: 'embedded', versions: [3] },
  { run: '/runs/a', name: 'a', kind: 'embedded', versions: [12, 9, 4] },
  { file: '/m.json', name: 'm', kind: 'openai', model: 'M' },
];
const evaluation = (version: number, successes: number, episodes = 20): EvalPoint => ({
  label: 'dev',
  at: 1,
  version,
  episodes,
  successes,
  errors: 0,
  low: 0,
  high: 1,
  perFamily: {},
});
const after = (messages: readonly Message[], from: State = begin(input, 'ready', emptyForm)): State =>
  messages.reduce(reduce, from);
const loaded: Message = { type: 'policies', policies, images: [] };
const facts = (evals: readonly EvalPoint[], of = '/runs/a'): Message => ({
  type: 'facts',
  facts: { of, evals, tasks: [] },
});
const step = (index: number, entropy: number): StepView =>
  ({ index, entropy, tokens: [{ label: 'x', entropy }], actions: [] }) as unknown as StepView;

describe('what can be tried', () => {
  it('begins with the policy that was asked for; one that is gone gives way to the newest', () => {
    expect(after([loaded]).form.policy).toBe('/runs/a');
    const gone = begin({ ...input, run: '/runs/gone', version: 7 }, 'ready', emptyForm);
    expect(gone.form).toMatchObject({ policy: '/runs/gone', version: '7' });
    expect(after([loaded], gone).form).toMatchObject({ policy: '/runs/b', version: 'newest' });
    expect(after([{ ...loaded, policies: [] }]).form.policy).toBe('');
  });

  it('a version and a task are of their policy: with another one, whoever chose it, they are not asked for', () => {
    const form = { ...emptyForm, policy: '/runs/a', version: '9', family: 'f', seed: '4', instruction: 'x' },
      asked = (s: State): unknown => paramsOf(s, 'policy'),
      of = (policy: object): object => ({ params: { policy, base: '/runs', mode: 'policy', instruction: 'x' } }),
      open = after([loaded, facts([evaluation(9, 3)])], begin(input, 'ready', form));
    expect(asked(open)).toMatchObject({ params: { policy: { run: '/runs/a', version: 9 }, family: 'f', seed: 4 } });
    // Try Policy… on another run, also with a version of it, and on the same one.
    const other = after([{ type: 'input', input: { ...input, run: '/runs/b' } }], open);
    expect([asked(other), other.facts]).toEqual([of({ run: '/runs/b' }), undefined]);
    expect(asked(after([{ type: 'input', input: { ...input, run: '/runs/b', version: 3 } }], open))).toEqual(
      of({ run: '/runs/b', version: 3 }),
    );
    const same = after([{ type: 'input', input }], open);
    expect([asked(same), same.facts]).toEqual([asked(open), open.facts]);
    // The page is built again for another run.
    expect(asked(after([loaded], begin({ ...input, run: '/runs/b' }, 'ready', form)))).toEqual(of({ run: '/runs/b' }));
    // The run is gone.
    const left = after([{ ...loaded, policies: policies.filter((p) => !('run' in p && p.run === '/runs/a')) }], open);
    expect([asked(left), left.facts]).toEqual([of({ run: '/runs/b' }), undefined]);
  });

  it('a page that is built again begins with what its reader chose, not with what it was opened for', () => {
    const s = after([loaded, { type: 'form', form: { policy: '/runs/b' } }, { type: 'form', form: { version: '3' } }]),
      again = (from: State): State => after([loaded], begin({ ...input, ...askedOf(from) }, 'ready', from.form));
    expect(askedOf(s)).toEqual({ run: '/runs/b', version: 3 });
    expect(again(s).form).toMatchObject({ policy: '/runs/b', version: '3' });
    // `best` is a choice of the page, and a run file is no run.
    const best = after([{ type: 'form', form: { version: 'best' } }], s);
    expect(askedOf(best)).toEqual({ run: '/runs/b' });
    expect(again(best).form).toMatchObject({ policy: '/runs/b', version: 'best' });
    const file = after([{ type: 'form', form: { policy: '/m.json' } }], s);
    expect(askedOf(file)).toEqual({});
    expect(again(file).form.policy).toBe('/m.json');
    // Before the policies are known nothing was chosen.
    expect(askedOf(after([]))).toEqual({ run: '/runs/a' });
  });

  it('a version whose checkpoint is gone is not asked for: the newest is, as the page says', () => {
    const s = after([loaded], begin({ ...input, version: 9 }, 'ready', emptyForm)),
      gone: TryPolicy = { run: '/runs/a', name: 'a', kind: 'embedded', versions: [12, 4] };
    expect(s.form.version).toBe('9');
    expect(after([{ type: 'policies', policies: [gone], images: [] }], s).form).toMatchObject({
      policy: '/runs/a',
      version: 'newest',
    });
  });

  it('another policy has other versions, tasks and facts', () => {
    const s = after([
      loaded,
      facts([evaluation(9, 3)]),
      { type: 'form', form: { version: '9', family: 'f', seed: '4', instruction: 'stays' } },
      { type: 'form', form: { policy: '/runs/b' } },
    ]);
    expect(s.form).toMatchObject({ policy: '/runs/b', version: 'newest', family: '', seed: '', instruction: 'stays' });
    expect(s.facts).toBeUndefined();
    // What was asked about the one before comes too late.
    expect(after([facts([evaluation(9, 3)])], s).facts).toBeUndefined();
  });

  it('the best evaluated is one whose checkpoint is there: the highest success, of equals the newest', () => {
    const evals = [evaluation(3, 20), evaluation(4, 12), evaluation(9, 12), evaluation(12, 3), evaluation(12, 0, 0)];
    expect(bestOf([12, 9, 4], evals)?.version).toBe(9);
    expect(bestOf([12], [])).toBeUndefined();
    expect(versionOptions(policies[1], evals).map((o) => o.value)).toEqual(['newest', 'best', '12', '9', '4']);
    expect(versionOptions(policies[1], []).map((o) => o.value)).toEqual(['newest', '12', '9', '4']);
    expect(versionOptions(policies[2], evals)).toEqual([]);
  });

  it('asks for what was chosen and no more', () => {
    const s = after([loaded, facts([evaluation(9, 12)])]);
    expect(paramsOf(s, 'policy')).toMatchObject({ field: 'instruction' });
    const with_ = (form: Partial<State['form']>): ReturnType<typeof paramsOf> =>
      paramsOf(after([{ type: 'form', form }], s), 'policy');
    expect(with_({ instruction: ' Press OK ' })).toEqual({
      params: { policy: { run: '/runs/a' }, base: '/runs', mode: 'policy', instruction: 'Press OK' },
    });
    // A seed is of a task.
    expect(with_({ instruction: 'x', seed: '5' })).toEqual({
      params: { policy: { run: '/runs/a' }, base: '/runs', mode: 'policy', instruction: 'x' },
    });
    expect(with_({ family: 'f', seed: '5', version: 'best', choices: 'sampled', image: 'web' })).toEqual({
      params: {
        policy: { run: '/runs/a', version: 9 },
        base: '/runs',
        mode: 'policy',
        family: 'f',
        seed: 5,
        image: 'web',
        sampled: true,
      },
    });
    expect(with_({ family: 'f', seed: '-1' })).toMatchObject({ field: 'seed' });
    expect(with_({ policy: '/m.json', instruction: 'x' })).toEqual({
      params: { policy: { file: '/m.json' }, base: '/runs', mode: 'policy', instruction: 'x' },
    });
    expect(paramsOf(after([{ ...loaded, policies: [] }]), 'policy')).toMatchObject({ field: 'policy' });
  });
});

describe('a session', () => {
  it('its steps come in parts, the last one again; those of another session are none of it', () => {
    const s = after([
      loaded,
      { type: 'session', session: 's' },
      { type: 'steps', session: 's', from: 0, answer: { steps: [step(0, 0.2)] } },
      { type: 'steps', session: 's', from: 0, answer: { steps: [step(0, 0.3), step(1, 0.9)] } },
      { type: 'steps', session: 'other', from: 0, answer: { steps: [] } },
    ]);
    expect(s.steps.map((x) => x.entropy)).toEqual([0.3, 0.9]);
    expect([shownStep(s)?.index, hottest(s)]).toEqual([1, 0.9]);
    const asking = after(
      [
        {
          type: 'steps',
          session: 's',
          from: 1,
          answer: { steps: [step(1, 0.9)], proposal: { id: 1, step: step(2, 1.5) } },
        },
      ],
      s,
    );
    expect([shownStep(asking)?.index, hottest(asking)]).toEqual([2, 1.5]);
    expect(shownStep(after([{ type: 'select', step: 0 }], asking))?.index).toBe(0);
    // The next session begins with nothing.
    expect(after([{ type: 'session', session: 't' }], asking)).toMatchObject({
      steps: [],
      proposal: undefined,
      selected: undefined,
      pictured: false,
    });
  });
});
