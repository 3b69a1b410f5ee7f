import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';

const { engineDigest } = (await import(pathToFileURL(join('scripts/lib/engineDigest.mjs')).href)) as {
  engineDigest(root?: string): string;
};

it("the record of the engine's tests is of the engine as it is: npm run test:engine, and commit what it writes", () => {
  const recorded = JSON.parse(readFileSync('test/engine/results/engine.json', 'utf8')) as {
    engine: string;
    tests: { collected: number; passed: number; failed: number };
  };
  expect(recorded.engine).toBe(engineDigest());
  expect(recorded.tests).toMatchObject({ failed: 0, passed: recorded.tests.collected });
});
