import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Integration tests that time nothing: they run beside others. Only `deterministic` and `imageExtra` have desktops. */
const APART = [
  'test/integration/annotations/service.test.ts',
  'test/integration/data/{kill,lock}.test.ts',
  'test/integration/docker/imageExtra.test.ts',
  'test/integration/fuzz/*.test.ts',
  'test/integration/interchange/{cli,torchFile}.test.ts',
  'test/integration/run/{commandLine,deterministic}.test.ts',
  'test/integration/trainer/{dedupe,human,learning,lookAhead,operators,reading,speller,targetKl,torch,update}.test.ts',
];

/** In unit tests that replace a module or something global, or that measure the whole process. */
const ALONE =
    /\bvi\.(mock|doMock|resetModules|stub\w+)\(|spyOn\(globalThis|process\.env\[[^\]]+\] = |process\.memoryUsage|\bLoopWatch\b/,
  UNIT = ['test/unit', 'test/property'].flatMap((dir) =>
    readdirSync(dir, { recursive: true, encoding: 'utf8' })
      .filter((f) => f.endsWith('.test.ts'))
      .map((f) => join(dir, f)),
  ),
  alone = UNIT.filter((f) => ALONE.test(readFileSync(f, 'utf8'))),
  // Behind the other layers (scripts/test.mjs) one of half a minute takes two.
  behindLimits = {
    environment: 'node',
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
  };

/**
 * Layers: `unit` (and `alone`) needs nothing but Node; `integration` drives real desktops, Docker and ONNX Runtime,
 * one file at a time, but for `apart`; `pages` shows the webviews in a real browser, a file a processor; `e2e`, last,
 * drives the packaged extension in a real VS Code workbench (scripts/e2e.mjs makes it ready).
 */
export default defineConfig({
  test: {
    // One a processor; Vitest leaves one idle, which is half of a machine with two.
    maxWorkers: availableParallelism(),
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/property/**/*.test.ts'],
          exclude: alone,
          // What one file has loaded the next need not: a fifth of the time of this layer.
          isolate: false,
          ...behindLimits,
        },
      },
      {
        test: {
          name: 'alone',
          include: alone,
          ...behindLimits,
        },
      },
      {
        test: {
          name: 'apart',
          env: { ORT_DISABLE_TELEMETRY: '1' },
          include: APART,
          ...behindLimits,
          pool: 'forks',
        },
      },
      {
        test: {
          name: 'integration',
          // Tests that use ONNX Runtime by themselves report to nobody either.
          env: { ORT_DISABLE_TELEMETRY: '1' },
          include: ['test/integration/**/*.test.ts', 'test/daemon/**/*.test.ts'],
          exclude: APART,
          environment: 'node',
          testTimeout: 180_000,
          hookTimeout: 300_000,
          expect: { poll: { timeout: 15_000, interval: 20 } },
          pool: 'forks',
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'pages',
          include: ['test/webview/**/*.test.ts'],
          ...behindLimits,
          sequence: { groupOrder: 2 },
          pool: 'forks',
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          environment: 'node',
          sequence: { groupOrder: 3 },
          testTimeout: 180_000,
          hookTimeout: 600_000,
          expect: { poll: { timeout: 15_000, interval: 50 } },
          pool: 'forks',
          maxWorkers: 1,
        },
      },
    ],
  },
});
