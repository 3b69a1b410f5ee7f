import { defineConfig } from 'vitest/config';

/** Two layers: `unit` needs nothing but Node; `integration` drives real desktops, Docker and ONNX Runtime, one file at a time. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts', 'test/property/**/*.test.ts'], environment: 'node', testTimeout: 60_000 } },
      {
        test: {
          name: 'integration', include: ['test/integration/**/*.test.ts'], environment: 'node',
          testTimeout: 180_000, hookTimeout: 300_000, pool: 'forks', poolOptions: { forks: { singleFork: true } },
        },
      },
    ],
  },
});
