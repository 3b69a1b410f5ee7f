/**
 * Checks the messages of a page. A page shows recorded data, which could make it misbehave; nothing it sends is trusted
 * by a cast. Everything returned here consists of checked fields; for an invalid message it is undefined, and the
 * message is logged.
 */
import {
  pageCommands,
  pageMethods,
  type HostAction,
  type PageCommand,
  type PageKind,
  type PageMethod,
  type ToHost,
} from '../../webview/protocol.js';
import { savedTableFiltersOf, tableFilterOf } from '../../runtime/protocol/shared.js';
import type { RunEventType } from '../../runtime/protocol/types.js';
import { isObject, maxPath, maxRuns, optional, text, viewOf, whole, type Raw } from './checks.js';
import { restoredInput } from './panelKinds.js';

const maxText = 8 << 20;
/**
 * Characters of JSON in a request's parameters: names, filters and numbers. An edit carries thoughts and typed texts, a
 * batch of input what was pasted.
 */
const maxParams = 64 << 10,
  maxOf: Readonly<Partial<Record<PageMethod, number>>> = {
    'annotation/edit': 1 << 20,
    'control/input': 256 << 10,
    'control/act': 256 << 10,
  };
const maxEvents = 2000,
  maxInputText = 10_000,
  maxScreen = 16_384;
const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const eventTypes: Readonly<Record<RunEventType, true>> = {
  started: true,
  step: true,
  ended: true,
  group: true,
  trained: true,
  metrics: true,
  eval: true,
  checkpoint: true,
  spans: true,
  note: true,
  closed: true,
};
const isEventType = (x: unknown): x is RunEventType => typeof x === 'string' && Object.hasOwn(eventTypes, x);
const areEventTypes = (x: unknown): x is RunEventType[] => Array.isArray(x) && x.every(isEventType);
const isMethodOf = <K extends PageKind>(kind: K, x: unknown): x is PageMethod<K> =>
  (pageMethods[kind] as readonly unknown[]).includes(x);
const isPageCommand = (x: unknown): x is PageCommand => (pageCommands as readonly unknown[]).includes(x);

export function parseToHost(m: unknown, kind: PageKind): ToHost | undefined {
  if (!isObject(m) || !text(m['boot'], 100)) return undefined;
  const boot = m['boot'];
  switch (m['type']) {
    case 'ready':
      return { type: 'ready', boot };
    case 'lost':
      return { type: 'lost', boot };
    case 'request': {
      const { id, method, params } = m;
      if (!whole(id) || !isMethodOf(kind, method) || !isObject(params) || !small(params, maxOf[method] ?? maxParams))
        return undefined;
      if (method === 'control/input' && !isInput(params)) return undefined;
      return { type: 'request', boot, id, method, params };
    }
    case 'cancel':
      return whole(m['id']) ? { type: 'cancel', boot, id: m['id'] } : undefined;
    case 'subscribe': {
      const { run, sinceSeq, types, rollout } = m;
      if (!text(run) || !whole(sinceSeq) || !optional(rollout, 200) || !(types === undefined || areEventTypes(types)))
        return undefined;
      return {
        type: 'subscribe',
        boot,
        run,
        sinceSeq,
        types,
        rollout: rollout || undefined,
      };
    }
    case 'action': {
      const action = parseAction(m['action']);
      return action && { type: 'action', boot, action };
    }
    case 'now': {
      const input = restoredInput(m, kind);
      return input && { type: 'now', boot, input };
    }
    case 'title':
      return text(m['title'], 300) ? { type: 'title', boot, title: m['title'] } : undefined;
    case 'fault':
      return typeof m['message'] === 'string'
        ? { type: 'fault', boot, message: m['message'].slice(0, 10_000) }
        : undefined;
    default:
      return undefined;
  }
}

export function parseAction(a: unknown): HostAction | undefined {
  if (!isObject(a)) return undefined;
  switch (a['action']) {
    case 'openTrajectory': {
      const { run, rollout, step, beside } = a;
      if (!text(run) || !text(rollout, 200) || !(step === undefined || whole(step))) return undefined;
      return {
        action: 'openTrajectory',
        run,
        rollout,
        step,
        beside: beside === true || undefined,
      };
    }
    case 'compare':
      return text(a['run']) && text(a['left'], 200) && text(a['right'], 200)
        ? { action: 'compare', run: a['run'], left: a['left'], right: a['right'] }
        : undefined;
    case 'openTable': {
      const { run, filter, view } = a;
      return text(run) ? { action: 'openTable', run, filter: tableFilterOf(filter), ...viewOf(view) } : undefined;
    }
    case 'keepFilter': {
      const [filter] = savedTableFiltersOf([a['filter']]);
      return filter && { action: 'keepFilter', filter };
    }
    case 'dropFilter':
      return text(a['name']) ? { action: 'dropFilter', name: a['name'] } : undefined;
    case 'openText':
      return text(a['rollout'], 200) && optional(a['run'])
        ? { action: 'openText', rollout: a['rollout'], run: a['run'] || undefined }
        : undefined;
    case 'copy':
      return text(a['text'], maxText) ? { action: 'copy', text: a['text'] } : undefined;
    case 'copyLink': {
      const { run, rollout, step } = a;
      return text(run) && optional(rollout, 200) && (step === undefined || whole(step))
        ? { action: 'copyLink', run, ...(rollout ? { rollout } : {}), ...(step === undefined ? {} : { step }) }
        : undefined;
    }
    case 'exportPage': {
      const { run, rollout } = a;
      return optional(run) && optional(rollout, 200)
        ? { action: 'exportPage', ...(run ? { run } : {}), ...(rollout ? { rollout } : {}) }
        : undefined;
    }
    case 'saveChart':
      return text(a['name'], 200) && text(a['png'], maxText) && base64.test(a['png'])
        ? { action: 'saveChart', name: a['name'], png: a['png'] }
        : undefined;
    case 'saveImage':
      return text(a['path']) && text(a['name'], 200)
        ? { action: 'saveImage', path: a['path'], name: a['name'] }
        : undefined;
    case 'annotate':
      return text(a['run']) && text(a['rollout'], 200)
        ? { action: 'annotate', run: a['run'], rollout: a['rollout'] }
        : undefined;
    case 'moved':
      return text(a['rollout'], 200) ? { action: 'moved', rollout: a['rollout'] } : undefined;
    case 'command':
      return isPageCommand(a['command']) && optional(a['argument'], maxPath * maxRuns)
        ? { action: 'command', command: a['command'], argument: a['argument'] || undefined }
        : undefined;
    default:
      return undefined;
  }
}

/** Cheap bound on what a request may carry. */
function small(params: Raw, max: number): boolean {
  try {
    return JSON.stringify(params).length <= max;
  } catch {
    return false;
  }
}

/**
 * A batch of a person's input: known events with positions on a screen and nothing else. They move a real pointer, so
 * each is checked.
 */
function isInput(params: Raw): boolean {
  const { session, events } = params;
  return text(session, 200) && Array.isArray(events) && events.length <= maxEvents && events.every(isInputEvent);
}
const eventFields: Readonly<Record<string, readonly string[]>> = {
  move: ['x', 'y'],
  button: ['x', 'y', 'button', 'down'],
  wheel: ['x', 'y', 'dx', 'dy'],
  key: ['key', 'down'],
  text: ['text'],
};
const fieldOk: Readonly<Record<string, (v: unknown) => boolean>> = {
  at: (v) => Number.isFinite(v),
  x: (v) => whole(v) && v < maxScreen,
  y: (v) => whole(v) && v < maxScreen,
  dx: (v) => Number.isFinite(v) && Math.abs(v as number) <= 1000,
  dy: (v) => Number.isFinite(v) && Math.abs(v as number) <= 1000,
  button: (v) => v === 'left' || v === 'middle' || v === 'right',
  down: (v) => typeof v === 'boolean',
  key: (v) => text(v, 64),
  text: (v) => text(v, maxInputText),
};
function isInputEvent(e: unknown): boolean {
  if (!isObject(e) || typeof e['type'] !== 'string' || !Object.hasOwn(eventFields, e['type'])) return false;
  const fields = ['at', ...eventFields[e['type']]!];
  return Object.keys(e).every((k) => k === 'type' || fields.includes(k)) && fields.every((k) => fieldOk[k]!(e[k]));
}
