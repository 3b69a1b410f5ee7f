/** Compare page: wires two trajectories to the host. */
import { t } from '../ui/words.js';
import './style.css';
import type { HostError } from '../protocol.js';
import { Commands, type Command } from '../ui/commands.js';
import { focusFirst } from '../ui/dom.js';
import { clip } from '../ui/format.js';
import { Frames } from '../ui/frames.js';
import { Host, RequestFailed, type Init, type Pushed } from '../ui/host.js';
import { registerToolkit } from '../ui/toolkit.js';
import { diverge, nextDifference } from './diverge.js';
import { ComparePage } from './page.js';
import {
  initialCompare,
  reduceCompare,
  type CompareChange,
  type CompareInput,
  type CompareState,
  type SideName,
} from './state.js';

interface Saved {
  readonly input: CompareInput;
  readonly selected?: number;
}

registerToolkit();
const host = new Host<'compare'>(),
  frames = { left: new Frames(host), right: new Frames(host) };
let state: CompareState,
  page: ComparePage,
  subscribed = false,
  focused = false,
  saving: ReturnType<typeof setTimeout> | undefined;
const loading = new Map<SideName, AbortController>();

function dispatch(c: CompareChange): void {
  const old = state;
  state = reduceCompare(state, c);
  if (state !== old) shown(old);
}
function shown(old?: CompareState): void {
  for (const side of ['left', 'right'] as const) {
    const v = state[side].view;
    if (v) frames[side].open(state.run, v.framesDir);
  }
  page.render(state);
  if (state.left.view && !focused) {
    focused = true;
    focusFirst(() => page.focusStrip());
  }
  const title = (state.left.view ?? state.right.view)?.row.instruction;
  if (title !== undefined && title !== (old?.left.view ?? old?.right.view)?.row.instruction) {
    document.title = t('Compare: {0}', clip(title, 32));
    host.title(document.title);
  }
  for (const side of ['left', 'right'] as const) {
    if (state[side].stale && (!old || state[side] !== old[side] || !loading.has(side))) void load(side);
    for (const d of [1, -1, 2, -2]) {
      const hash = state[side].view?.steps[state.selected + d]?.frame.hash;
      if (hash) frames[side].picture(hash);
    }
  }
  save();
}
async function load(side: SideName): Promise<void> {
  const { run } = state,
    { rollout } = state[side];
  loading.get(side)?.abort();
  const mine = new AbortController();
  loading.set(side, mine);
  try {
    const view = await host.request('trajectory/get', { run, rollout }, mine.signal);
    if (mine.signal.aborted) return;
    loading.delete(side);
    dispatch({ type: 'loaded', side, view });
    if (view.live && view.seq !== undefined && !subscribed) {
      subscribed = true;
      host.subscribe({ run, sinceSeq: view.seq, types: ['started', 'step', 'ended', 'group', 'closed'] });
    }
  } catch (e) {
    if (mine.signal.aborted) return;
    loading.delete(side);
    dispatch({ type: 'failed', side, error: asError(e) });
  }
}
const asError = (e: unknown): HostError =>
  e instanceof RequestFailed
    ? { kind: e.kind, message: e.message, remedy: e.remedy }
    : {
        kind: 'internal',
        message: e instanceof Error ? e.message : String(e),
        remedy: t('Try again; if it stays, see the log.'),
      };
const input = (): CompareInput => ({
  kind: 'compare',
  run: state.run,
  left: state.left.rollout,
  right: state.right.rollout,
});
function save(): void {
  clearTimeout(saving);
  saving = setTimeout(flush, 250);
}
function flush(): void {
  host.setState({ input: input(), ...(state.chosen ? { selected: state.selected } : {}) });
}

const go = (at: number): void => dispatch({ type: 'select', at });
const first = (): void => {
  const d = state.left.view && state.right.view ? diverge(state.left.view.steps, state.right.view.steps) : undefined;
  if (d) go(d.at);
};
const jump = (direction: 1 | -1): void => {
  const to = nextDifference(page.differences, state.selected, direction);
  if (to !== undefined) go(to);
};
const both = (run: (p: ComparePage['left']) => void): void => {
  run(page.left);
  run(page.right);
};
const sideOf = (context: unknown): SideName =>
  typeof context === 'object' && context !== null && 'side' in context && context.side === 'right' ? 'right' : 'left';
function copy(context?: unknown): void {
  const of = (s: SideName): unknown => state[s].view?.steps[state.selected],
    value = context === undefined ? { left: of('left'), right: of('right') } : of(sideOf(context));
  host.act({ action: 'copy', text: JSON.stringify(value, null, 2) });
}
function saveImage(context?: unknown): void {
  const side = sideOf(context),
    step = state[side].view?.steps[state.selected];
  if (step)
    host.act({
      action: 'saveImage',
      path: frames[side].path(step.frame.hash),
      name: `${state[side].rollout}-step-${step.index + 1}.png`,
    });
}
const open = (side: SideName): void =>
  host.act({
    action: 'openTrajectory',
    run: state.run,
    rollout: state[side].rollout,
    ...(state.selected < 0 ? {} : { step: state[side].view?.steps[state.selected]?.index ?? 0 }),
  });

const commands: readonly Command[] = [
  {
    name: 'nextStep',
    keys: ['ArrowRight'],
    words: t('Next step in both'),
    group: t('Steps'),
    run: () => go(state.selected + 1),
  },
  {
    name: 'previousStep',
    keys: ['ArrowLeft'],
    words: t('Previous step in both'),
    group: t('Steps'),
    run: () => go(state.selected - 1),
  },
  { name: 'firstStep', keys: ['Home'], words: t('First step'), group: t('Steps'), run: () => go(0) },
  { name: 'lastStep', keys: ['End'], words: t('Last step'), group: t('Steps'), run: () => go(Number.MAX_SAFE_INTEGER) },
  { name: 'firstDifference', keys: ['x'], words: t('First difference'), group: t('Differences'), run: first },
  { name: 'nextDifference', keys: ['n'], words: t('Next difference'), group: t('Differences'), run: () => jump(1) },
  {
    name: 'previousDifference',
    keys: ['p'],
    words: t('Previous difference'),
    group: t('Differences'),
    run: () => jump(-1),
  },
  { name: 'swap', keys: ['w'], words: t('Swap sides'), group: t('Differences'), run: () => dispatch({ type: 'swap' }) },
  {
    name: 'toggleShot',
    keys: [' ', 'b'],
    words: t('Screen before or after the action'),
    group: t('Screenshots'),
    run: () => dispatch({ type: 'shot', shot: state.shot === 'before' ? 'after' : 'before' }),
  },
  {
    name: 'zoomIn',
    keys: ['+', '='],
    words: t('Zoom in'),
    group: t('Screenshots'),
    run: () => both((p) => p.stage.zoom(1)),
  },
  {
    name: 'zoomOut',
    keys: ['-'],
    words: t('Zoom out'),
    group: t('Screenshots'),
    run: () => both((p) => p.stage.zoom(-1)),
  },
  {
    name: 'zoomFit',
    keys: ['0'],
    words: t('Fit the whole screen'),
    group: t('Screenshots'),
    run: () => both((p) => p.stage.fit()),
  },
  {
    name: 'zoomActual',
    keys: ['1'],
    words: t('One to one'),
    group: t('Screenshots'),
    run: () => both((p) => p.stage.actual()),
  },
  ...(
    [
      ['ArrowLeft', 64, 0, t('Pan left')],
      ['ArrowRight', -64, 0, t('Pan right')],
      ['ArrowUp', 0, 64, t('Pan up')],
      ['ArrowDown', 0, -64, t('Pan down')],
    ] as const
  ).map(([key, x, y, words]): Command => ({
    name: `pan${key.slice(5)}`,
    keys: [key],
    alt: true,
    words,
    group: t('Screenshots'),
    run: () => both((p) => p.stage.pan(x, y)),
  })),
  { name: 'copyStep', keys: ['c'], words: t('Copy both steps as JSON'), group: t('Page'), run: copy },
  { name: 'saveScreenshot', keys: ['s'], words: t('Save the left screenshot'), group: t('Page'), run: saveImage },
];

function receive(m: Pushed, keys: Commands): void {
  if (m.type === 'events' && m.run === state.run)
    dispatch({ type: 'events', events: m.events, ...(m.ended ? { ended: true } : {}) });
  else if (m.type === 'daemon') {
    const back = m.state === 'ready' && state.daemon.state !== 'ready';
    dispatch({ type: 'daemon', state: m.state, ...(m.error ? { error: m.error } : {}) });
    if (back)
      for (const side of ['left', 'right'] as const) if (!state[side].view || state[side].view?.live) void load(side);
  } else if (m.type === 'show' && m.input.kind === 'compare') {
    state = initialCompare(m.input, state.daemon.state);
    subscribed = false;
    shown();
  } else if (m.type === 'do') keys.run(m.what, m.context);
}
function begin(init: Init): void {
  if (init.input.kind !== 'compare') throw new Error(`the compare page cannot show a ${init.input.kind}`);
  const saved = host.getState<Saved>(),
    mine =
      saved?.input?.kind === 'compare' && saved.input.left === init.input.left && saved.input.right === init.input.right
        ? saved
        : undefined;
  state = initialCompare(init.input, init.daemon, mine?.selected);
  const keys = new Commands(commands);
  page = new ComparePage(document.getElementById('app') ?? document.body, frames.left, frames.right, {
    select: go,
    shot: (shot) => dispatch({ type: 'shot', shot }),
    jump,
    first,
    swap: () => dispatch({ type: 'swap' }),
    choose: (side, rollout) => dispatch({ type: 'choose', side, rollout }),
    open,
    retry: (side) => void load(side),
    help: () => keys.help(),
    host: (command) => host.act({ action: 'command', command }),
  });
  host.on((m) => receive(m, keys));
  addEventListener('pagehide', flush);
  document.title = t('Compare trajectories');
  shown();
}
void host.start().then(begin);
