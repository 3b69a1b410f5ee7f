import { resolve } from 'node:path';
import type { CurationView, Lanes, Ledger, RunDetail, RunEvent, RunStatus } from '../../../runtime/protocol/types.js';
import { createStudioService } from '../../../runtime/service/index.js';
import type { Browser } from '../../helpers/workbench/playwright.js';
import { renderersShare } from './cpu.js';
import { PageHost } from './pageHost.js';

/**
 * The dashboard of a day of training that goes on: share of one core its page uses while status comes once a second,
 * spans, rollouts and updates as six desktops make them. The page alone is measured, not the workbench around it; its
 * questions are answered by the real service.
 */
export async function liveDashboard(
  browser: Browser,
  run: string,
  ms: number,
): Promise<{ readonly share: number; readonly faults: readonly string[] }> {
  const service = createStudioService({
    entry: { file: resolve('dist/runtime.js') },
    cacheDir: resolve('.cache/bench/thumbs'),
    log: () => undefined,
  });
  const ask = async <R>(method: string, params: unknown): Promise<R> =>
    (await service.handlers.get(method)!(params, {
      signal: new AbortController().signal,
      notify: () => undefined,
    })) as R;
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } }),
    page = await context.newPage();
  const timers: NodeJS.Timeout[] = [];
  try {
    const detail = await ask<RunDetail>('run/get', { run }),
      base = detail.summary.createdAt + 24 * 3.6e6,
      t0 = Date.now(),
      now = (): number => base + Date.now() - t0;
    const status = (): RunStatus => ({
      state: 'running',
      phase: 'training',
      elapsedMs: now() - detail.summary.createdAt,
      version: detail.summary.version,
      rollouts: detail.summary.rollouts,
      running: 6,
      waitingGroups: 1,
      errors: 0,
      rolloutsPerHour: 420 + (Date.now() % 9),
      stepsPerMinute: 105,
      trainedActionsPerMinute: 90,
      bounds: { rolloutsPerHour: 600, stepsPerMinute: 150, trainedActionsPerMinute: 130, by: 'desktops' },
      success: 0.7,
      curve: [],
      desktopUtilisation: 0.8,
      replicaUtilisation: 0.6,
      trainerUtilisation: 0.5,
      replicaVersions: [detail.summary.version, detail.summary.version],
    });
    const answer = async (method: string, params: unknown): Promise<unknown> => {
      const r = await ask<object>(method, params);
      return method === 'run/get' ? { ...r, summary: { ...detail.summary, state: 'running', status: status() } } : r;
    };
    const host = await PageHost.open(page, {
      input: { kind: 'dashboard', run },
      folders: [run],
      request: answer,
      subscribed: (_q, send) => {
        let seq = detail.seq;
        const say = (events: readonly RunEvent[]): void => {
          send({ type: 'events', run, events, nextSeq: seq, live: true });
        };
        timers.push(
          setInterval(
            () => send({ type: 'status', run, status: status(), ledger: detail.ledger satisfies Ledger }),
            1000,
          ),
        );
        timers.push(
          setInterval(() => {
            const at = now();
            say([
              {
                seq: seq++,
                at,
                type: 'spans',
                lanes: Array.from({ length: 6 }, (_, i) => ({
                  id: `desktop-${i}`,
                  kind: 'desktop' as const,
                  what: ['observe', 'decide', 'act', 'settle'] as const,
                  start: [at - 800, at - 750, at - 600, at - 500],
                  ms: [50, 150, 100, 500],
                  rollout: ['r', 'r', 'r', 'r'],
                  version: [9, 9, 9, 9],
                })),
                syncs: [],
              },
            ]);
          }, 1000),
        );
        timers.push(
          setInterval(() => {
            const at = now();
            say([
              {
                seq: seq++,
                at,
                type: 'ended',
                row: {
                  rollout: `live${seq}`,
                  task: 'desk/press-button#1',
                  family: 'desk/press-button',
                  instruction: 'x',
                  outcome: seq % 3 ? 'success' : 'failure',
                  reward: seq % 3 ? 1 : 0,
                  provenance: 'rollout',
                  steps: 12,
                  cap: 30,
                  endedAt: at,
                },
              },
            ]);
          }, 5000),
        );
        timers.push(
          setInterval(() => {
            const at = now();
            say([
              {
                seq: seq++,
                at,
                type: 'metrics',
                source: 'run',
                version: 9,
                values: { success: 0.7, rolloutsPerHour: 420, stepsPerMinute: 105, trainedActionsPerMinute: 90 },
              },
              { seq: seq++, at, type: 'trained', batch: `b${seq}`, version: 9, rollouts: ['a', 'b'] },
            ]);
          }, 15_000),
        );
      },
    });
    await page.locator('canvas').first().waitFor({ timeout: 30_000 });
    await ask<Lanes | CurationView>('run/curation', { run });
    // What opening costs is over when the page asks for nothing more.
    await page.evaluate('new Promise((done) => requestIdleCallback(() => done(), { timeout: 5000 }))');
    const share = await renderersShare(ms);
    await host.close();
    return { share, faults: host.faults };
  } finally {
    for (const t of timers) clearInterval(t);
    await context.close();
    await service.close({ now: true });
  }
}
