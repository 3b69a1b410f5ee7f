import { optionsOf, traitsOf, type RunConfig } from '../../config/index.js';
import { StudioError } from '../../domain/index.js';

type Settings = Readonly<Record<string, unknown>>;

/** How a policy is sampled, by the names of the run file: the same in every part of a collection. */
function samplingOf(c: RunConfig): Settings {
  const { kind, temperature } = c.policy,
    chat = traitsOf(kind).chat ? optionsOf<Settings>(c, kind) : undefined;
  return {
    seed: c.seed,
    'policy.temperature': temperature,
    [`policy.${kind}.maxTokens`]: chat?.['maxTokens'],
    [`policy.${kind}.images`]: chat?.['images'],
    'rollout.maxSteps': c.rollout.maxSteps,
  };
}
/** The settings that the figures of a measurement depend on. */
const measuredOf = (c: RunConfig): Settings => ({
  policy: c.policy,
  tasks: c.tasks,
  'rollout.maxSteps': c.rollout.maxSteps,
  'rollout.taskTimeoutS': c.rollout.taskTimeoutS,
  'desktops.image': c.desktops.image,
  'desktops.imageExtra': c.desktops.imageExtra || undefined,
  'desktops.screen': c.desktops.screen,
});

export interface SettingsRequest {
  readonly config: RunConfig;
  /** The collection, for people. */
  readonly name: string;
  /** Whether the collection is for measuring. */
  readonly measures: boolean;
}
/** Episodes under two settings say nothing together. Throws `config.invalid` that names what differs from `was`. */
export function sameSettings(was: RunConfig, { config, name, measures }: SettingsRequest): void {
  const settings = measures ? measuredOf : samplingOf,
    before = settings(was),
    other = Object.entries(settings(config)).flatMap(([k, v]) =>
      JSON.stringify(v) === JSON.stringify(before[k]) ? [] : [k],
    );
  if (other.length === 0) return;
  throw new StudioError(
    'config.invalid',
    `${name} was ${measures ? 'measured' : 'collected'} under other settings: ${other.join(', ')}.`,
    `Give the command as it was, or another ${measures ? '--out' : '--into'}.`,
  );
}
