/** The page's knowledge of what can be tried, and the choices among it. Pure. */
import type {
  ControlState,
  EvalPoint,
  ImageRow,
  StepView,
  TaskRow,
  TryParams,
  TryPolicy,
  TrySteps,
} from '../../runtime/protocol/types.js';
import type { DaemonState, HostError, InputOf } from '../protocol.js';
import { percent } from '../ui/format.js';
import { t } from '../ui/words.js';

/** The choices, kept when the page is built again. Texts as they stand in the fields. */
export interface Form {
  /** Run folder or run file. */
  readonly policy: string;
  /** `newest`, `best`, or a number. */
  readonly version: string;
  /** Empty: an empty desktop. */
  readonly family: string;
  readonly seed: string;
  readonly instruction: string;
  /** Empty: the policy's own. */
  readonly image: string;
  readonly choices: 'likely' | 'sampled';
}
export const emptyForm: Form = {
  policy: '',
  version: 'newest',
  family: '',
  seed: '',
  instruction: '',
  image: '',
  choices: 'likely',
};
/** Further facts about the chosen policy. */
export interface PolicyFacts {
  readonly of: string;
  readonly evals: readonly EvalPoint[];
  readonly tasks: readonly TaskRow[];
}
export interface State {
  readonly input: InputOf<'try'>;
  readonly daemon: DaemonState;
  readonly form: Form;
  /** Absent while they are being read. */
  readonly policies?: readonly TryPolicy[];
  readonly images: readonly ImageRow[];
  readonly facts?: PolicyFacts;
  /** Error of a reading or a start. */
  readonly error?: HostError;
  /** A session is being started. */
  readonly starting: boolean;
  readonly session?: string;
  readonly steps: readonly StepView[];
  readonly proposal?: TrySteps['proposal'];
  /** The step that is looked at; absent: the desktop as it is. */
  readonly selected?: number;
  readonly shot: 'before' | 'after';
  readonly heat: boolean;
  /** The desktop of the session has sent a picture. */
  readonly pictured: boolean;
}
export type Message =
  | { readonly type: 'daemon'; readonly state: DaemonState }
  | { readonly type: 'reading' }
  | { readonly type: 'input'; readonly input: InputOf<'try'> }
  | { readonly type: 'policies'; readonly policies: readonly TryPolicy[]; readonly images: readonly ImageRow[] }
  | { readonly type: 'facts'; readonly facts: PolicyFacts }
  | { readonly type: 'form'; readonly form: Partial<Form> }
  | { readonly type: 'starting' }
  | { readonly type: 'failed'; readonly error?: HostError | undefined }
  | { readonly type: 'session'; readonly session: string }
  | { readonly type: 'steps'; readonly session: string; readonly from: number; readonly answer: TrySteps }
  | { readonly type: 'select'; readonly step?: number | undefined }
  | { readonly type: 'shot'; readonly shot: State['shot'] }
  | { readonly type: 'heat'; readonly on: boolean }
  | { readonly type: 'pictured' };

export const begin = (input: InputOf<'try'>, daemon: DaemonState, form: Form): State => ({
  input,
  daemon,
  form: chosen(form, input),
  images: [],
  starting: false,
  steps: [],
  shot: 'before',
  heat: true,
  pictured: false,
});
/** The choices for a policy: another one has other versions and tasks. */
const choicesOf = (form: Form, policy: string): Form =>
  policy === form.policy ? form : { ...form, policy, version: 'newest', family: '', seed: '' };
/** The policy that somebody asked the page to try. */
const chosen = (form: Form, { run, version }: InputOf<'try'>): Form =>
  run === undefined
    ? form
    : { ...choicesOf(form, run), ...(version === undefined ? {} : { version: String(version) }) };
/** The version that is chosen by its number; undefined for the newest and the best. */
const numbered = ({ version }: Form): number | undefined => (/^\d+$/.test(version) ? Number(version) : undefined);
/** What the page asks for now, as somebody asks for it who opens the page: the choice of its reader counts. */
export function askedOf(s: State): Pick<InputOf<'try'>, 'run' | 'version'> {
  const policy = policyOf(s);
  if (!policy) return { run: s.input.run, version: s.input.version };
  if (!('run' in policy)) return { run: undefined, version: undefined };
  return { run: policy.run, version: numbered(s.form) };
}
/** The state with other choices; facts are of one policy. */
const withForm = (s: State, form: Form): State => ({
  ...s,
  form,
  facts: form.policy === s.form.policy ? s.facts : undefined,
});

export function reduce(s: State, m: Message): State {
  switch (m.type) {
    case 'daemon':
      return { ...s, daemon: m.state };
    case 'input':
      return { ...withForm(s, chosen(s.form, m.input)), input: m.input };
    case 'reading':
      // An error of the reading before is past; that of a start stays.
      return s.policies ? s : { ...s, error: undefined };
    case 'policies': {
      const policy = m.policies.find((p) => keyOf(p) === s.form.policy) ?? m.policies[0],
        form = choicesOf(s.form, policy ? keyOf(policy) : ''),
        version = numbered(form),
        gone = version !== undefined && !(policy && 'run' in policy && policy.versions.includes(version));
      return {
        ...withForm(s, gone ? { ...form, version: 'newest' } : form),
        policies: m.policies,
        images: m.images,
      };
    }
    case 'facts':
      return m.facts.of === s.form.policy ? { ...s, facts: m.facts } : s;
    case 'form': {
      const form = { ...choicesOf(s.form, m.form.policy ?? s.form.policy), ...m.form };
      return { ...withForm(s, form), error: undefined };
    }
    case 'starting':
      return { ...s, starting: true, error: undefined };
    case 'failed':
      return { ...s, starting: false, error: m.error };
    case 'session':
      return m.session === s.session
        ? { ...s, starting: false }
        : {
            ...s,
            starting: false,
            session: m.session,
            steps: [],
            proposal: undefined,
            selected: undefined,
            pictured: false,
          };
    case 'steps': {
      if (m.session !== s.session) return s;
      return { ...s, steps: [...s.steps.slice(0, m.from), ...m.answer.steps], proposal: m.answer.proposal };
    }
    case 'select':
      return { ...s, selected: m.step };
    case 'shot':
      return { ...s, shot: m.shot };
    case 'pictured':
      return s.pictured ? s : { ...s, pictured: true };
    case 'heat':
      return { ...s, heat: m.on };
  }
}

export const keyOf = (p: TryPolicy): string => ('run' in p ? p.run : p.file);
export const policyOf = (s: Pick<State, 'policies' | 'form'>): TryPolicy | undefined =>
  s.policies?.find((p) => keyOf(p) === s.form.policy);

/** The version whose checkpoint is there with the best evaluation: the highest success, of equals the newest. */
export function bestOf(versions: readonly number[], evals: readonly EvalPoint[]): EvalPoint | undefined {
  let best: EvalPoint | undefined;
  for (const e of evals) {
    if (e.episodes === 0 || !versions.includes(e.version)) continue;
    const rate = e.successes / e.episodes,
      old = best && best.successes / best.episodes;
    if (old === undefined || rate > old || (rate === old && e.version > best!.version)) best = e;
  }
  return best;
}
const evalWords = (e: EvalPoint): string => t('{0} of {1} episodes', percent(e.successes / e.episodes), e.episodes);

export interface Option {
  readonly value: string;
  readonly label: string;
}
/** Versions to choose from; empty for a model that has none of its own. */
export function versionOptions(p: TryPolicy | undefined, evals: readonly EvalPoint[]): Option[] {
  if (!p || !('run' in p) || p.versions.length === 0) return [];
  const best = bestOf(p.versions, evals);
  return [
    { value: 'newest', label: t('Newest (v{0})', p.versions[0]!) },
    ...(best ? [{ value: 'best', label: t('Best evaluated (v{0}, {1})', best.version, evalWords(best)) }] : []),
    ...p.versions.map((v) => {
      const e = evals.findLast((x) => x.version === v && x.episodes > 0);
      return { value: String(v), label: e ? t('v{0}, {1}', v, evalWords(e)) : t('v{0}', v) };
    }),
  ];
}
export const policyOptions = (policies: readonly TryPolicy[]): Option[] =>
  policies.map((p) => ({
    value: keyOf(p),
    label: 'run' in p ? (p.model === undefined ? p.name : t('{0} ({1})', p.name, p.model)) : t('Model {0}', p.model),
  }));
export const taskOptions = (tasks: readonly TaskRow[]): Option[] => [
  { value: '', label: t('Empty desktop') },
  ...tasks.map((k) => ({
    value: k.family,
    label: k.heldOut ? t('{0} (held out)', k.family) : k.family,
  })),
];
/** The instruction of the chosen task, as its family gives it for one seed. */
export function taskWords(s: State): string | undefined {
  const title = s.facts?.tasks.find((k) => k.family === s.form.family)?.title;
  return title?.replace(/^[^:]*: /, '');
}

/** The request that begins a session, or what is missing for it. */
export function paramsOf(
  s: State,
  mode: TryParams['mode'],
): { readonly params: TryParams } | { readonly missing: string; readonly field: 'policy' | 'instruction' | 'seed' } {
  const { form, input } = s,
    policy = policyOf(s);
  if (!policy) return { missing: t('Choose a policy.'), field: 'policy' };
  const instruction = form.instruction.trim();
  if (instruction === '' && form.family === '')
    return { missing: t('Enter an instruction or choose a task.'), field: 'instruction' };
  const seed = form.seed.trim();
  if (seed !== '' && !/^\d{1,9}$/.test(seed))
    return { missing: t('A seed is a whole number; leave it empty for any of the training seeds.'), field: 'seed' };
  return {
    params: {
      policy: 'run' in policy ? { run: policy.run, ...versionOf(s) } : { file: policy.file },
      base: input.base,
      mode,
      ...(form.image === '' ? {} : { image: form.image }),
      ...(input.provider === undefined ? {} : { provider: input.provider }),
      ...(form.family === '' ? {} : { family: form.family, ...(seed === '' ? {} : { seed: Number(seed) }) }),
      ...(instruction === '' ? {} : { instruction }),
      ...(form.choices === 'sampled' ? { sampled: true } : {}),
    },
  };
}
function versionOf(s: State): { readonly version?: number } {
  const policy = policyOf(s),
    { version } = s.form;
  if (version === 'best' && policy && 'run' in policy) {
    const best = bestOf(policy.versions, s.facts?.evals ?? []);
    return best ? { version: best.version } : {};
  }
  const number = numbered(s.form);
  return number === undefined ? {} : { version: number };
}

/** Whether the session is over. */
export const over = (c: ControlState | undefined): boolean => c === undefined || c.mode === 'ended';
/** The step that the details are of: the one that is looked at, else what is proposed, else the newest. */
export const shownStep = (s: State): StepView | undefined =>
  s.selected === undefined ? (s.proposal?.step ?? s.steps.at(-1)) : s.steps[s.selected];
/** Highest token entropy so far: full heat. */
export const hottest = (s: State): number =>
  Math.max(
    0,
    ...[...s.steps, ...(s.proposal ? [s.proposal.step] : [])].flatMap((x) => x.tokens ?? []).map((k) => k.entropy),
  );
