/** The status bar item in words: one item, short text, an icon that spins only while something is worked on. */
import type { ControlState, RunSummary } from '../runtime/protocol/types.js';
import type { DaemonState, HostError } from '../webview/protocol.js';
import { commands, type CommandId } from './ids.js';
import { heldWord } from './views/rows.js';
import { successWords } from './views/runRows.js';
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
  /** The runtime elsewhere that the window is attached to. */
  readonly attached?: string | undefined;
  /** Sessions of people at a desktop. */
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
  commands.detachRuntime,
  commands.showLog,
  commands.openSettings,
  commands.showSession,
  commands.recordDemonstration,
];
const link = (words: string, command: CommandId, argument?: string): string =>
  `[${words}](command:${command}${argument === undefined ? '' : `?${encodeURIComponent(JSON.stringify([argument]))}`})`;
const tools = (): string =>
  [link(t('Show Log'), commands.showLog), link(t('Settings'), commands.openSettings)].join(' · ');

export function statusText(f: StatusFacts): StatusText {
  return withPlace(sessionText(f), f.trusted ? f.attached : undefined);
}
/** Says to which runtime elsewhere the window is attached. */
function withPlace(s: StatusText, attached: string | undefined): StatusText {
  if (attached === undefined) return s;
  const words = t('attached to {0}', attached);
  return {
    ...s,
    text: `${s.text} $(remote) ${attached.length > mostOfName ? `…${attached.slice(-mostOfName)}` : attached}`,
    spoken: `${s.spoken}, ${words}`,
    tooltip: `${plain(words)} · ${link(t('Detach from Runtime'), commands.detachRuntime)}\n\n${s.tooltip}`,
  };
}
const mostOfName = 24;
function sessionText(f: StatusFacts): StatusText {
  const s = runText(f),
    held = f.trusted && f.daemon === 'ready' ? (f.sessions ?? []) : [],
    [first] = held;
  if (!first) return s;
  // A person's session comes before the run: a desktop waits for that person.
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
interface Item {
  readonly icon: string;
  /** Text beside the icon. */
  readonly short: string;
  /** First line of the tooltip, and what a screen reader says. */
  readonly head: string;
  readonly body?: readonly string[];
  readonly actions?: readonly string[];
  readonly command: CommandId;
  readonly argument?: string;
  readonly severity?: StatusText['severity'];
}
const item = (i: Item): StatusText => ({
  text: `$(${i.icon}) ${i.short}`,
  command: i.command,
  ...(i.argument === undefined ? {} : { argument: i.argument }),
  severity: i.severity ?? 'none',
  spoken: [t('DART Studio'), i.head].join(', '),
  tooltip: [`**DART Studio**: ${plain(i.head)}`, ...(i.body ?? []), [...(i.actions ?? []), tools()].join(' · ')].join(
    '\n\n',
  ),
});

function runText(f: StatusFacts): StatusText {
  if (!f.trusted)
    return item({
      icon: 'workspace-untrusted',
      short: 'DART',
      head: t('Restricted Mode: trajectories can be opened, nothing is started'),
      command: commands.openWalkthrough,
    });
  if (f.daemon !== 'ready')
    return item(f.attached === undefined ? daemonItem(f.daemon, f.detail) : lostItem(f.daemon, f.detail));
  // An older build may still serve this window.
  const older = f.detail ? [plain(f.detail.message)] : [];
  if (f.active) return item(activeItem(f.active, older));
  const idle = idleItem(older);
  return item(f.attached === undefined ? idle : { ...idle, actions: [], command: commands.openDashboard });
}
/** While the runtime elsewhere does not answer: it is neither started nor restarted from here. */
const lostItem = (state: Exclude<DaemonState, 'ready'>, detail: HostError | undefined): Item =>
  state === 'stopped' || state === 'failed' || state === 'incompatible'
    ? {
        icon: 'error',
        short: t('DART: not connected'),
        head: detail?.message ?? t('the runtime is not running'),
        body: remedy(detail),
        actions: [link(t('Retry'), commands.startRuntime)],
        command: commands.startRuntime,
        severity: 'error',
      }
    : daemonItem(state, detail);
/** While no runtime answers. */
function daemonItem(state: Exclude<DaemonState, 'ready'>, detail: HostError | undefined): Item {
  switch (state) {
    case 'starting':
      return { icon: 'loading~spin', short: 'DART', head: t('the runtime is starting'), command: commands.showLog };
    case 'attaching':
      return { icon: 'loading~spin', short: 'DART', head: t('looking for a runtime'), command: commands.showLog };
    case 'reconnecting':
      return {
        icon: 'sync~spin',
        short: 'DART',
        head: t('reconnecting to the runtime'),
        command: commands.showLog,
      };
    case 'incompatible':
      return {
        icon: 'warning',
        short: t('DART: restart needed'),
        head: detail?.message ?? t('a runtime of another version is running'),
        body: remedy(detail),
        actions: [link(t('Restart Runtime'), commands.restartRuntime)],
        command: commands.restartRuntime,
        severity: 'warning',
      };
    case 'failed':
      return {
        icon: 'error',
        short: t('DART: failed'),
        head: detail?.message ?? t('the runtime failed'),
        body: remedy(detail),
        actions: [link(t('Retry'), commands.startRuntime)],
        command: commands.showLog,
        severity: 'error',
      };
    case 'stopped':
      return {
        icon: 'circle-outline',
        short: 'DART',
        head: t('the runtime is not running'),
        actions: [link(t('Start Training…'), commands.startTraining), link(t('Start Runtime'), commands.startRuntime)],
        command: commands.startTraining,
      };
  }
}
const idleItem = (older: readonly string[]): Item => ({
  icon: 'circle-filled',
  short: 'DART',
  head: t('the runtime is ready; no run is active'),
  body: older,
  actions: [
    link(t('Start Training…'), commands.startTraining),
    link(t('Record Demonstration…'), commands.recordDemonstration),
    link(t('Stop Runtime'), commands.stopRuntime),
  ],
  command: commands.startTraining,
});
function activeItem(run: RunSummary, older: readonly string[]): Item {
  const short = shortStatus(run),
    paused = run.state === 'paused',
    stopping = run.state === 'stopping',
    pauseOrResume = paused ? link(t('Resume'), commands.resume) : link(t('Pause'), commands.pause);
  return {
    icon: stopping ? 'loading~spin' : paused ? 'debug-pause' : 'pulse',
    short: stopping ? t('DART: stopping') : paused ? t('DART: paused') : `DART ${short}`,
    head: t('{0}: {1}', run.name, stopping ? t('stopping') : paused ? t('paused') : short),
    body: [...statusLines(run.status), t('Training continues when VS Code is closed.'), ...older],
    actions: [
      link(t('Open Dashboard'), commands.openDashboard, run.run),
      ...(stopping ? [] : [pauseOrResume, link(t('Stop Training'), commands.stopTraining)]),
    ],
    command: commands.openDashboard,
    argument: run.run,
  };
}
/** Success, speed, and the phase where it is another than training. */
const shortStatus = (run: RunSummary): string => {
  const { status: s } = run;
  return (
    [
      successWords(run) || undefined,
      s && s.rolloutsPerHour > 0 ? t('{0}/h', Math.round(s.rolloutsPerHour)) : undefined,
      s && s.phase !== 'training' ? s.phase : undefined,
    ]
      .filter((x) => x !== undefined)
      .join(' · ') || t('starting')
  );
};
function statusLines(s: RunSummary['status']): string[] {
  if (!s) return [];
  const phase = [
    t('phase: {0}', s.phase),
    s.detail ? plain(s.detail) : '',
    s.success === undefined ? '' : t('last 64 rollouts {0}', percent(s.success)),
  ];
  const counts = [
    t('{0} rollouts/h, {1} steps/min', Math.round(s.rolloutsPerHour), Math.round(s.stepsPerMinute)),
    t('{0} rollouts, {1} running, policy version {2}', s.rollouts, s.running, s.version),
    s.budgetMs ? t('{0} of {1}', span(s.elapsedMs), span(s.budgetMs)) : span(s.elapsedMs),
  ];
  return [phase.filter((x) => x !== '').join('  \n'), counts.join('  \n')];
}
const remedy = (e: HostError | undefined): string[] => (e?.remedy ? [plain(e.remedy)] : []);
