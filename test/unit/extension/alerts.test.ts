import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { StudioContext } from '../../../extension/studioContext.js';
import type { Notifications } from '../../../runtime/protocol/notifications.js';
import type { RunSummary } from '../../../runtime/protocol/types.js';

/** What the editor was told to show, and what a person answers. */
const editor = vi.hoisted(() => ({
  said: [] as {
    readonly how: 'information' | 'warning' | 'error';
    readonly words: string;
    readonly buttons: string[];
  }[],
  pick: undefined as string | undefined,
  settings: {} as Record<string, unknown>,
}));
vi.mock('vscode', () => {
  const say =
    (how: 'information' | 'warning' | 'error') =>
    (words: string, ...buttons: string[]) => {
      editor.said.push({ how, words, buttons });
      return Promise.resolve(buttons.find((b) => b === editor.pick));
    };
  return {
    window: {
      showInformationMessage: say('information'),
      showWarningMessage: say('warning'),
      showErrorMessage: say('error'),
      state: { focused: true },
    },
    workspace: {
      getConfiguration: (section: string) => ({
        get: (key: string, fallback: unknown) => editor.settings[`${section}.${key}`] ?? fallback,
        update: (key: string, value: unknown, everywhere: boolean) => {
          if (everywhere) editor.settings[`${section}.${key}`] = value;
          return Promise.resolve();
        },
      }),
    },
  };
});
const { alertEnvironment, sayAlert, tellTargets } = await import('../../../extension/alerts.js'),
  { sayEnded } = await import('../../../extension/notify.js'),
  { sayRecovered } = await import('../../../extension/recovered.js');

type RunAlert = Notifications['run/alert'];
const alert = (o: Partial<RunAlert> = {}): RunAlert => ({
  run: '/w/runs/tiny',
  id: 'tiny-1',
  name: 'tiny',
  kind: 'target',
  message: 'An evaluation reached 90 %; the target is 80 %.',
  at: Date.UTC(2026, 10, 22, 12),
  ...o,
});

let refuses: Error | undefined,
  asked: unknown[] = [],
  warnings: string[] = [],
  shown: unknown[] = [],
  ran: unknown[][] = [];
/** A window of the extension on this storage. */
const studio = (visible: readonly unknown[] = []): StudioContext =>
  ({
    client: {
      state: 'ready',
      request: (type: { readonly method: string }, params: unknown) => {
        asked.push([type.method, params]);
        return refuses ? Promise.reject(refuses) : Promise.resolve({});
      },
    },
    log: { info: () => undefined, warn: (m: string) => warnings.push(m) },
    report: { background: (work: Promise<unknown>) => void work },
    panels: { show: (input: unknown) => shown.push(input), visible },
    extension: {
      globalState: {
        // Whoever muted ends of runs in an older version has them again, with a setting for it.
        get: (key: string, fallback: unknown) => (key === 'muteRunFinished' ? true : fallback),
        update: () => Promise.resolve(),
      },
    },
    cancelled: new Set<string>(),
    run: (...command: unknown[]) => ran.push(command),
  }) as unknown as StudioContext;

beforeEach(() => {
  editor.said = [];
  editor.pick = undefined;
  editor.settings = {};
  refuses = undefined;
  asked = [];
  warnings = [];
  shown = [];
  ran = [];
});

describe('an alert', () => {
  it('is a notification that opens the dashboard: good news as information, the rest as a warning', async () => {
    editor.pick = 'Open Dashboard';
    sayAlert(studio(), alert());
    sayAlert(studio(), alert({ kind: 'stalled', message: 'No rollout has ended for 10 minutes.' }));
    expect(editor.said).toEqual([
      { how: 'information', words: `tiny: ${alert().message}`, buttons: ['Open Dashboard'] },
      { how: 'warning', words: 'tiny: No rollout has ended for 10 minutes.', buttons: ['Open Dashboard'] },
    ]);
    await expect.poll(() => shown).toHaveLength(2);
    expect(shown[0]).toEqual({ kind: 'dashboard', run: '/w/runs/tiny' });
  });
  it('shows no notification where the settings turn alerts off', () => {
    editor.settings = { 'dartStudio.notifications.alerts': false };
    sayAlert(studio(), alert());
    expect(editor.said).toEqual([]);
  });
  it('is passed on by the runtime, which each window that attaches tells where to', async () => {
    tellTargets(studio());
    await expect.poll(() => asked).toHaveLength(1);
    editor.settings = {
      'dartStudio.alerts.command': '/bin/page',
      'dartStudio.alerts.webhook': 'https://hooks.example/secret',
      'dartStudio.alerts.desktop': true,
    };
    tellTargets(studio());
    await expect.poll(() => asked).toHaveLength(2);
    expect(asked).toEqual([
      ['machine/alerts', { command: '', webhook: '', desktop: false }],
      ['machine/alerts', { command: '/bin/page', webhook: 'https://hooks.example/secret', desktop: true }],
    ]);
    expect(alertEnvironment()).toEqual({
      DART_STUDIO_ALERT_COMMAND: '/bin/page',
      DART_STUDIO_ALERT_WEBHOOK: 'https://hooks.example/secret',
      DART_STUDIO_ALERT_DESKTOP: '1',
    });
    editor.settings = {};
    expect(alertEnvironment()).toEqual({});
  });
  it('of a runtime of an older build that cannot is a line of the log', async () => {
    refuses = new Error('The runtime does not know machine/alerts.');
    tellTargets(studio());
    await expect
      .poll(() => warnings)
      .toEqual(['the runtime does not pass on alerts: The runtime does not know machine/alerts.']);
  });
});

describe('the end of a run', () => {
  const ended: RunSummary = {
    run: '/w/runs/tiny',
    id: 'tiny-1',
    name: 'tiny',
    createdAt: Date.UTC(2026, 10, 22, 11),
    endedAt: Date.UTC(2026, 10, 22, 12),
    state: 'finished',
    rollouts: 40,
    version: 5,
    evals: [0.9],
    lastEval: {
      label: 'final',
      at: 1,
      version: 5,
      episodes: 10,
      successes: 9,
      errors: 0,
      low: 0.6,
      high: 0.98,
      perFamily: {},
    },
  };
  it('is one notification', () => {
    sayEnded(studio(), ended);
    expect(editor.said).toEqual([
      {
        how: 'information',
        words: 'Training run tiny is finished: 40 rollouts, evaluation 90 %.',
        buttons: ['Open', "Don't Show Again"],
      },
    ]);
  });
  it('is none when its runtime died and the next one goes on with it, and one when that cannot', () => {
    const was = { run: '/w/runs/tiny', id: 'tiny-1', name: 'tiny', at: ended.endedAt! };
    sayEnded(studio(), { ...ended, state: 'interrupted' });
    expect(editor.said).toEqual([]);
    sayRecovered(studio(), { ...was, outcome: 'resumed', message: 'It was interrupted and goes on.' });
    sayRecovered(studio(), { ...was, at: was.at + 1, outcome: 'left', message: 'It ended three runtimes.' });
    expect(editor.said.map((x) => x.how)).toEqual(['information', 'warning']);
  });
  it('that was left stopped offers to resume it, and the log that says why its runtime ended', async () => {
    const was = { run: '/w/runs/tiny', id: 'tiny-1', name: 'tiny', message: 'It was interrupted.' } as const;
    for (const [outcome, pick] of [
      ['left', 'Resume Run…'],
      ['failed', 'Show Runtime Log'],
      ['resumed', 'Open'],
    ] as const) {
      editor.pick = pick;
      sayRecovered(studio(), { ...was, outcome, at: ended.endedAt! });
    }
    expect(editor.said.map((x) => x.buttons)).toEqual([
      ['Resume Run…', 'Show Runtime Log', 'Open'],
      ['Show Runtime Log', 'Open'],
      ['Open'],
    ]);
    await expect.poll(() => shown).toEqual([{ kind: 'dashboard', run: '/w/runs/tiny' }]);
    expect(ran).toEqual([['dartStudio.resumeRun', '/w/runs/tiny'], ['dartStudio.showRuntimeLog']]);
  });
  it('is not told again once a person wants that, and a setting says so; a failure always is', async () => {
    editor.pick = "Don't Show Again";
    sayEnded(studio(), ended);
    await expect.poll(() => editor.settings).toEqual({ 'dartStudio.notifications.runFinished': false });
    sayEnded(studio(), ended);
    sayEnded(studio(), { ...ended, state: 'stopped' });
    expect(editor.said).toHaveLength(1);
    sayEnded(studio(), {
      ...ended,
      state: 'failed',
      damaged: { kind: 'trainer.lost', message: 'The trainer died.', remedy: 'See its log.' },
    });
    expect(editor.said.at(-1)).toEqual({
      how: 'error',
      words: 'Training run tiny failed. The trainer died. See its log.',
      buttons: ['Open', 'Show Log'],
    });
  });
  it('says nothing in a window that shows it already', () => {
    sayEnded(studio([{ kind: 'dashboard', run: '/w/runs/tiny' }]), ended);
    expect(editor.said).toEqual([]);
  });
});
