import { expect, it } from 'vitest';
import { mustBeTrainable } from '../../../runtime/config/trained.js';
import { parseRunText } from '../../../runtime/config/index.js';
import { planStart } from '../../../runtime/service/runSession.js';

const of = (preset: string, temperature?: number): string =>
  JSON.stringify({ preset, ...(temperature === undefined ? {} : { policy: { temperature } }) });

it('a model of a training server is trained as it is sampled, at temperature 1 alone', () => {
  for (const [text, why] of [
    [of('ui-tars-7b'), undefined],
    [of('quickstart', 0.6), undefined],
    [of('ui-tars-7b', 0.7), /^policy\.temperature: it is 0\.7/],
  ] as const) {
    const config = parseRunText(text, 'a run file');
    if (why) expect(() => mustBeTrainable(config)).toThrow(why);
    else mustBeTrainable(config);
  }
  // Said before there is a folder, also by the queue.
  expect(() => planStart({ text: of('ui-tars-7b', 0.7), base: '/' })).toThrow(/^policy\.temperature/);
});
