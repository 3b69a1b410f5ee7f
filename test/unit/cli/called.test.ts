import { expect, it } from 'vitest';
import { asCalled } from '../../../runtime/cli/called.js';

it('commands in a message are named as they are typed where they are read; names and links stay', () => {
  const npm = 'npm run -s cli --';
  expect(asCalled('Run `dart-studio tasks check`, then dart-studio train.', npm)).toBe(
    'Run `npm run -s cli -- tasks check`, then npm run -s cli -- train.',
  );
  const kept =
    'dart-studio:/run.schema.json, ~/.cache/dart-studio, the dart-studio- prefix; dart-studio Job; ~/dart-studio holds nothing';
  expect(asCalled(kept, npm)).toBe(kept);
  expect(asCalled('dart-studio train', undefined)).toBe('dart-studio train');
  // What looks like a pattern is a text.
  expect(asCalled('dart-studio train', '$& x')).toBe('$& x train');
});
