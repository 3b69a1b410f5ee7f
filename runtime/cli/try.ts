import type { StepView } from '../domain/index.js';
import { onInterrupt } from './interrupt.js';
import { thisBundle } from '../service/engines.js';
import { tryOnce } from '../service/tryOnce.js';
import { countOption, type Options } from './options.js';
import { printJson } from './output.js';

/** `try --policy P --instruction TEXT`: one episode, a line of JSON for what begins, each step, and how it ends. */
export async function tryPolicy(o: Options): Promise<number> {
  const stop = onInterrupt('Stopping.'),
    text = (name: string): string | undefined => (typeof o[name] === 'string' ? o[name] : undefined);
  try {
    const { outcome, verified } = await tryOnce({
      policy: String(o['policy']),
      version: countOption(o, 'checkpoint', 0),
      model: text('model'),
      coordinates: text('coordinates'),
      instruction: text('instruction'),
      family: text('task'),
      seed: countOption(o, 'seed', 0),
      sampled: o['sampled'] === true,
      maxSteps: countOption(o, 'maxSteps'),
      image: text('image'),
      provider: text('provider') as 'auto' | undefined,
      entry: thisBundle(),
      signal: stop.signal,
      onStarted: (about) => {
        line(about);
      },
      onStep: (s) => {
        line(stepLine(s));
      },
    });
    line(outcome.kind === 'error' ? { error: outcome.error } : verified ? { outcome } : { ended: true });
    return outcome.kind === 'error' ? (stop.signal.aborted ? 130 : 1) : 0;
  } finally {
    stop.off();
  }
}
const line = (value: unknown): void => {
  printJson(value, 0);
};
/** Screens are gone when it is over, so they are not named. */
const stepLine = ({
  index,
  thought,
  actions,
  entropy,
  tokens,
  rejected,
  version,
  settled,
  timings,
}: StepView): object => ({
  step: index,
  thought,
  actions,
  entropy,
  tokens,
  rejected,
  version,
  settled,
  timings,
});
