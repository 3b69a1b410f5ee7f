/** Trajectory inspector: wires the page to the host. */
import { t } from '../ui/words.js';
import './style.css';
import '../annotator/style.css';
import type { StepView, TrajectoryView } from '../../runtime/protocol/types.js';
import { Annotator } from '../annotator/annotator.js';
import type { KeptBox } from '../annotator/saver.js';
import type { HostError } from '../protocol.js';
import { Commands, type Command } from '../ui/commands.js';
import { focusFirst } from '../ui/dom.js';
import { nextHigh } from '../ui/entropy.js';
import { Frames } from '../ui/frames.js';
import { Host, RequestFailed, type Init, type Pushed } from '../ui/host.js';
import { registerToolkit } from '../ui/toolkit.js';
import { bestContrast } from './contrast.js';
import { Page, pageTitle } from './page.js';
import { initial, positionOf, reduce, type Change, type InspectorInput, type Kept, type State } from './state.js';

interface Saved extends Kept {
  readonly input: InspectorInput;
  readonly zoom?: number;
  readonly split?: number;
  /** Edits that are not on disk yet. */
  readonly edits?: readonly KeptBox[];
}

registerToolkit();
const host = new Host<'inspector'>(),
  frames = new Frames(host);
const followed = ['started', 'step', 'ended', 'group', 'trained', 'closed'] as const;
let state: State,
  page: Page,
  annotator: Annotator,
  split: number | undefined,
  fetching: AbortController | undefined,
  subscribed = '',
  saving: ReturnType<typeof setTimeout> | undefined;

function dispatch(c: Change): void {
  const old = state;
  state = reduce(state, c);
  if (state === old) return;
  if (state.view && state.view.framesDir !== old.view?.framesDir) frames.open(state.input.run, state.view.framesDir);
  page.render(state);
  annotator.update(state);
  if (state.view && !old.view) focusOnce();
  if (state.view && state.view.row.instruction !== old.view?.row.instruction) titled(state.view);
  if (state.stale) void load();
  prefetch();
  save();
}

function titled(v: TrajectoryView): void {
  document.title = pageTitle(v);
  host.title(document.title);
}
let focused = false;
function focusOnce(): void {
  if (focused) return;
  focused = true;
  focusFirst(() => page.focusStrip());
}

async function load(): Promise<void> {
  const { run, rollout } = state.input;
  if (run === undefined) return;
  fetching?.abort();
  const mine = (fetching = new AbortController());
  dispatch({ type: 'loading' });
  try {
    const view = await host.request('trajectory/get', { run, rollout }, mine.signal);
    if (mine.signal.aborted) return;
    dispatch({ type: 'loaded', view });
    if (view.seq !== undefined && subscribed !== `${run}|${rollout}`) {
      subscribed = `${run}|${rollout}`;
      host.subscribe({ run, sinceSeq: view.seq, rollout, types: followed });
    }
  } catch (e) {
    if (!mine.signal.aborted) dispatch({ type: 'failed', error: asError(e) });
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

/** The pictures one is likely to look at next. */
function prefetch(): void {
  const steps = state.view?.steps;
  if (!steps || state.selected < 0) return;
  for (const d of [1, -1, 2, -2]) {
    const hash = steps[state.selected + d]?.frame.hash;
    if (hash) frames.picture(hash);
  }
  const after = steps[state.selected]?.after?.hash;
  if (after) frames.picture(after);
}
function save(): void {
  clearTimeout(saving);
  saving = setTimeout(flush, 250);
}
function flush(): void {
  const { document: _d, ...input } = state.input,
    index = state.view?.steps[state.selected]?.index;
  const saved: Saved = {
    input: { ...input, ...(index === undefined || state.pinned ? { step: undefined } : { step: index }) },
    shot: state.shot,
    heat: state.heat,
    pinned: state.pinned,
    ...(page.stage.zoomed === undefined ? {} : { zoom: page.stage.zoomed }),
    ...(split === undefined ? {} : { split }),
    ...(annotator.kept.length ? { edits: annotator.kept } : {}),
  };
  host.setState({ ...saved });
}

/** The step a menu was opened on, else the selected one. */
function stepOf(context: unknown): StepView | undefined {
  const steps = state.view?.steps ?? [],
    index = typeof context === 'object' && context !== null && 'step' in context ? context.step : undefined;
  return typeof index === 'number' ? steps[positionOf(steps, index)] : steps[state.selected];
}
const copy = (context?: unknown): void => {
  const step = stepOf(context);
  if (step) host.act({ action: 'copy', text: JSON.stringify(step, null, 2) });
};
function saveImage(context?: unknown): void {
  const step = stepOf(context),
    link = step && (state.shot === 'after' && context === undefined ? (step.after ?? step.frame) : step.frame);
  if (step && link)
    host.act({
      action: 'saveImage',
      path: frames.path(link.hash),
      name: `${state.input.rollout}-step-${step.index + 1}${link === step.frame ? '' : '-after'}.png`,
    });
}
const openText = (): void =>
  host.act({
    action: 'openText',
    rollout: state.input.rollout,
    ...(state.input.run === undefined ? {} : { run: state.input.run }),
  });
const open = (rollout: string): void => {
  if (state.input.run !== undefined) host.act({ action: 'openTrajectory', run: state.input.run, rollout });
};
const compare = (rollout: string | undefined): void => {
  if (state.input.run !== undefined && rollout !== undefined)
    host.act({ action: 'compare', run: state.input.run, left: state.input.rollout, right: rollout });
};
const contrast = (): void => compare(bestContrast(state.view?.group, state.input.rollout));
const go = (by: number): void => dispatch({ type: 'select', at: state.selected + by });
const jump = (direction: 1 | -1): void => {
  const to = nextHigh(page.marks, state.selected, direction);
  if (to !== undefined) dispatch({ type: 'select', at: to });
};
const toggleShot = (): void => dispatch({ type: 'shot', shot: state.shot === 'before' ? 'after' : 'before' });

const commands: readonly Command[] = [
  { name: 'nextStep', keys: ['ArrowRight'], words: t('Next step'), group: t('Steps'), run: () => go(1) },
  { name: 'previousStep', keys: ['ArrowLeft'], words: t('Previous step'), group: t('Steps'), run: () => go(-1) },
  {
    name: 'firstStep',
    keys: ['Home'],
    words: t('First step'),
    group: t('Steps'),
    run: () => dispatch({ type: 'select', at: 0 }),
  },
  {
    name: 'lastStep',
    keys: ['End'],
    words: t('Last step'),
    group: t('Steps'),
    run: () => dispatch({ type: 'select', at: Number.MAX_SAFE_INTEGER }),
  },
  { name: 'nextEntropy', keys: ['n'], words: t('Next high-entropy step'), group: t('Steps'), run: () => jump(1) },
  {
    name: 'previousEntropy',
    keys: ['p'],
    words: t('Previous high-entropy step'),
    group: t('Steps'),
    run: () => jump(-1),
  },
  {
    name: 'follow',
    keys: ['f'],
    words: t('Follow a live rollout'),
    group: t('Steps'),
    run: () => {
      if (state.view?.live) dispatch({ type: 'follow' });
    },
  },
  {
    name: 'toggleShot',
    keys: [' ', 'b'],
    words: t('Screen before or after the action'),
    group: t('Screenshot'),
    run: toggleShot,
  },
  {
    name: 'toggleHeat',
    keys: ['h'],
    words: t('Places the policy considered'),
    group: t('Screenshot'),
    run: () => dispatch({ type: 'heat', on: !state.heat }),
  },
  {
    name: 'zoomIn',
    keys: ['+', '='],
    words: t('Zoom in (also Ctrl with the wheel)'),
    group: t('Screenshot'),
    run: () => {
      page.stage.zoom(1);
      save();
    },
  },
  {
    name: 'zoomOut',
    keys: ['-'],
    words: t('Zoom out'),
    group: t('Screenshot'),
    run: () => {
      page.stage.zoom(-1);
      save();
    },
  },
  {
    name: 'zoomFit',
    keys: ['0'],
    words: t('Fit the whole screen'),
    group: t('Screenshot'),
    run: () => {
      page.stage.fit();
      save();
    },
  },
  {
    name: 'zoomActual',
    keys: ['1'],
    words: t('One to one'),
    group: t('Screenshot'),
    run: () => {
      page.stage.actual();
      save();
    },
  },
  {
    name: 'panLeft',
    keys: ['ArrowLeft'],
    alt: true,
    words: t('Pan left'),
    group: t('Screenshot'),
    run: () => page.stage.pan(64, 0),
  },
  {
    name: 'panRight',
    keys: ['ArrowRight'],
    alt: true,
    words: t('Pan right'),
    group: t('Screenshot'),
    run: () => page.stage.pan(-64, 0),
  },
  {
    name: 'panUp',
    keys: ['ArrowUp'],
    alt: true,
    words: t('Pan up'),
    group: t('Screenshot'),
    run: () => page.stage.pan(0, 64),
  },
  {
    name: 'panDown',
    keys: ['ArrowDown'],
    alt: true,
    words: t('Pan down'),
    group: t('Screenshot'),
    run: () => page.stage.pan(0, -64),
  },
  { name: 'copyStep', keys: ['c'], words: t('Copy step as JSON'), group: t('Page'), run: copy },
  { name: 'saveScreenshot', keys: ['s'], words: t('Save screenshot'), group: t('Page'), run: saveImage },
  { name: 'openText', keys: ['t'], words: t('Open as text'), group: t('Page'), run: openText },
  {
    name: 'compare',
    keys: ['d'],
    words: t('Compare with the sibling that differs most'),
    group: t('Page'),
    run: contrast,
  },
];

function begin(init: Init): void {
  if (init.input.kind !== 'inspector') throw new Error(`the inspector cannot show a ${init.input.kind}`);
  const saved = host.getState<Saved>(),
    mine = saved?.input?.kind === 'inspector' && saved.input.rollout === init.input.rollout ? saved : undefined;
  split = saved?.split;
  state = initial(
    init.input.step === undefined && mine?.input.step !== undefined
      ? { ...init.input, step: mine.input.step }
      : init.input,
    init.daemon,
    mine,
  );
  page = new Page(
    document.getElementById('app') ?? document.body,
    frames,
    {
      select: (at) => dispatch({ type: 'select', at }),
      shot: (shot) => dispatch({ type: 'shot', shot }),
      heat: (on) => dispatch({ type: 'heat', on }),
      follow: () => dispatch({ type: 'follow' }),
      siblings: () => state.input.run !== undefined,
      retry: () => void load(),
      copy,
      save: saveImage,
      text: openText,
      contrast,
      open,
      compare,
      help: () => keys.help(),
      annotate: () => annotator.toggle(),
      host: (command) => host.act({ action: 'command', command }),
      split: (w) => {
        split = w;
        save();
      },
    },
    split === undefined ? {} : { split },
  );
  annotator = new Annotator(
    {
      stage: page.stage,
      tools: page.toolsSlot,
      stepSlot: page.stepSlot,
      state: () => state,
      dispatch,
      request: (m, p, signal) => host.request(m, p, signal),
      error: asError,
      act: (a) => host.act(a),
      announce: (words) => page.say(words),
      keep: () => {
        clearTimeout(saving);
        flush();
      },
      focusSteps: () => page.focusStrip(),
      go: move,
    },
    saved?.edits ?? [],
  );
  const keys = new Commands([...commands, ...annotator.commands]);
  host.on((m) => receive(m, keys));
  addEventListener('pagehide', () => {
    annotator.leave();
    flush();
  });
  document.title = t('Trajectory');
  shown();
  if (init.daemon === 'ready') annotator.resume();
  if (mine?.zoom !== undefined) page.stage.setZoom(mine.zoom);
}
/** Draws a state that did not come about by a change: a new page, or another trajectory in it. */
function shown(): void {
  fetching?.abort();
  page.skipped(state.input.skipped ?? []);
  if (state.view) frames.open(state.input.run, state.view.framesDir);
  page.render(state);
  annotator.update(state);
  prefetch();
  if (state.view) {
    titled(state.view);
    focusOnce();
  } else void load();
}
/**
 * Another trajectory of the run in this page. What is known of it is shown at once, and asked for anew all the same.
 */
function move(input: InspectorInput, known: TrajectoryView | undefined): void {
  state = reduce(state, { type: 'show', input });
  if (known) state = reduce(state, { type: 'loaded', view: known });
  shown();
  if (known) void load();
  save();
}
/** Whether the page shows that already: it may have walked there through the queue. */
const there = (i: InspectorInput): boolean =>
  !i.document &&
  !state.input.document &&
  i.run === state.input.run &&
  i.rollout === state.input.rollout &&
  i.step === undefined &&
  (state.view !== undefined || state.loading);
function receive(m: Pushed, keys: Commands): void {
  annotator.receive(m);
  if (m.type === 'events' && m.run === state.input.run)
    dispatch({ type: 'events', events: m.events, ...(m.ended ? { ended: true } : {}) });
  else if (m.type === 'daemon') {
    const back = m.state === 'ready' && state.daemon.state !== 'ready';
    dispatch({ type: 'daemon', state: m.state, ...(m.error ? { error: m.error } : {}) });
    if (back && (state.view?.live || !state.view)) void load();
  } else if (m.type === 'show' && m.input.kind === 'inspector' && there(m.input)) {
    if (m.input.annotate) dispatch({ type: 'annotate', on: true, ...(m.input.queue ? { queue: true } : {}) });
  } else if (m.type === 'show' && m.input.kind === 'inspector') {
    // The same document written anew (a file that grew) keeps the step one looks at.
    const again =
      m.input.rollout === state.input.rollout && m.input.step === undefined
        ? state.view?.steps[state.selected]?.index
        : undefined;
    state = reduce(state, { type: 'show', input: again === undefined ? m.input : { ...m.input, step: again } });
    shown();
    save();
  } else if (m.type === 'do') keys.run(m.what, m.context);
}

void host.start().then(begin);
