/** The status bar item in words: one item, short text, an icon that spins only while something is worked on. */
import type { ControlState, RunSummary } from '../runtime/protocol/types.js';
import type { DaemonState, HostError } from '../webview/protocol.js';
import { commands, type CommandId } from './ids.js';
import { heldWord } from './views/rows.js';
import { percent, plain, span, t } from './words.js';

export interface StatusText {
  readonly text: string;
  /** Markdown with command links. */
  readonly tooltip: string;
  readonly command: CommandId;
  readonly argument?: string;
  readonly severity: 'none' | 'warning' | 'error';
  readonly spoken: string;
}
export interface StatusFacts {
  readonly daemon: DaemonState;
  readonly detail: HostError | undefined;
  readonly active: RunSummary | undefined;
  readonly trusted: boolean;
  /** Desktops that people have. */
  readonly sessions?: readonly ControlState[];
}

/** Commands that the tooltip links to; nothing else runs from it. */
export const tooltipCommands: readonly CommandId[] = [
  commands.openDashboard,
  commands.pause,
  commands.resume,
  commands.stopTraining,
  commands.startTraining,
  commands.startRuntime,
  commands.stopRuntime,
  commands.restartRuntime,
  commands.showLog,
  commands.openSettings,
  commands.showSession,
  commands.recordDemonstration,
];
const link = (words: string, command: CommandId): string => `[${words}](command:${command})`;
const tools = (): string =>
  [link(t('Show Log'), commands.showLog), link(t('Settings'), commands.openSettings)].join(' · ');

export function statusText(f: StatusFacts): StatusText {
  const s = runText(f),
    held = f.trusted && f.daemon === 'ready' ? (f.sessions ?? []) : [],
    [first] = held;
  if (!first) return s;
  // Somebody's hands come first: a desktop waits for them.
  const what = first.purpose === 'record' ? (first.verdict ? t('judged') : t('recording')) : heldWord(first),
    more = held.length > 1 ? ` +${held.length - 1}` : '';
  return {
    ...s,
    text: `$(${first.purpose === 'record' ? 'record' : 'person'}) DART ${what}${more}`,
    command: commands.showSession,
    argument: first.session,
    spoken: [t('DART Studio'), `${what}: ${first.task}`].join(', '),
    tooltip: [
      ...held.map((x) => `**${plain(x.task)}** (${plain(x.desktop)}): ${heldWord(x)}`),
      link(t('Show'), commands.showSession),
      s.tooltip,
    ].join('\n\n'),
  };
}
function runText(f: StatusFacts): StatusText {
  const say = (
    icon: string,
    short: string,
    head: string,
    body: readonly string[],
    actions: readonly string[],
    command: CommandId,
    severity: StatusText['severity'] = 'none',
  ): StatusText => ({
    text: `$(${icon}) ${short}`,
    command,
    severity,
    spoken: [t('DART Studio'), head].join(', '),
    tooltip: [`**DART Studio**: ${plain(head)}`, ...body, [...actions, tools()].join(' · ')].join('\n\n'),
  });
  if (!f.trusted)
    return say(
      'workspace-untrusted',
      'DART',
      t('Restricted Mode: trajectories can be opened, nothing is started'),
      [],
      [],
      commands.openWalkthrough,
    );
  switch (f.daemon) {
    case 'starting':
      return say('loading~spin', 'DART', t('the runtime is starting'), [], [], commands.showLog);
    case 'attaching':
      return say('loading~spin', 'DART', t('looking for a runtime'), [], [], commands.showLog);
    case 'reconnecting':
      return say(
        'sync~spin',
        'DART',
        t('connecting to the runtime again; a run goes on meanwhile'),
        [],
        [],
        commands.showLog,
      );
    case 'incompatible':
      return say(
        'warning',
        t('DART: restart needed'),
        f.detail?.message ?? t('the runtime is of another version'),
        remedy(f.detail),
        [link(t('Restart Runtime'), commands.restartRuntime)],
        commands.restartRuntime,
        'warning',
      );
    case 'failed':
      return say(
        'error',
        t('DART: failed'),
        f.detail?.message ?? t('the runtime failed'),
        remedy(f.detail),
        [link(t('Retry'), commands.startRuntime)],
        commands.showLog,
        'error',
      );
    case 'stopped':
      return say(
        'circle-outline',
        'DART',
        t('the runtime is not running'),
        [],
        [link(t('Start Training…'), commands.startTraining), link(t('Start Runtime'), commands.startRuntime)],
        commands.startTraining,
      );
    case 'ready':
      break;
  }
  const older = f.detail ? [plain(f.detail.message)] : [];
  const run = f.active,
    s = run?.status;
  if (!run)
    return say(
      'circle-filled',
      'DART',
      t('the runtime is ready; no run is active'),
      older,
      [
        link(t('Start Training…'), commands.startTraining),
        link(t('Record Demonstration…'), commands.recordDemonstration),
        link(t('Stop Runtime'), commands.stopRuntime),
      ],
      commands.startTraining,
    );
  const short =
    [
      s?.success === undefined ? undefined : percent(s.success),
      s && s.rolloutsPerHour > 0 ? t('{0}/h', Math.round(s.rolloutsPerHour)) : undefined,
      s && s.phase !== 'training' ? s.phase : undefined,
    ]
      .filter((x) => x !== undefined)
      .join(' · ') || t('starting');
  const body = s
    ? [
        [
          t('phase: {0}', s.phase),
          s.detail ? plain(s.detail) : '',
          s.success === undefined ? '' : t('success of the newest rollouts {0}', percent(s.success)),
        ]
          .filter((x) => x !== '')
          .join('  \n'),
        [
          t('{0} rollouts/h, {1} steps/min', Math.round(s.rolloutsPerHour), Math.round(s.stepsPerMinute)),
          t('{0} rollouts, {1} running, policy version {2}', s.rollouts, s.running, s.version),
          s.budgetMs ? t('{0} of {1}', span(s.elapsedMs), span(s.budgetMs)) : span(s.elapsedMs),
        ].join('  \n'),
      ]
    : [];
  const survives = t('Training goes on when VS Code is closed.');
  const paused = run.state === 'paused',
    stopping = run.state === 'stopping';
  return say(
    stopping ? 'loading~spin' : paused ? 'debug-pause' : 'pulse',
    stopping ? t('DART: stopping') : paused ? t('DART: paused') : `DART ${short}`,
    t('{0}: {1}', run.name, stopping ? t('stopping') : paused ? t('paused') : short),
    [...body, survives, ...older],
    [
      link(t('Open Dashboard'), commands.openDashboard),
      ...(stopping
        ? []
        : [
            paused ? link(t('Resume'), commands.resume) : link(t('Pause'), commands.pause),
            link(t('Stop Training'), commands.stopTraining),
          ]),
    ],
    commands.openDashboard,
  );
}
const remedy = (e: HostError | undefined): string[] => (e?.remedy ? [plain(e.remedy)] : []);
