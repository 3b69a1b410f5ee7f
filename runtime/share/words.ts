import { actionEntry, argumentValue, type Action, type OutcomeKind } from '../domain/index.js';
import type { Point } from '../domain/actionArguments.js';

export const clip = (s: string, most: number): string => (s.length > most ? `${s.slice(0, most - 1)}…` : s);
const visible = (s: string): string => s.replace(/\n/g, '⏎').replace(/\t/g, '⇥');
const DIRECTIONS: Readonly<Record<string, string>> = {
  up: 'scroll up',
  down: 'scroll down',
  left: 'scroll left',
  right: 'scroll right',
};

function argumentWords(a: Action, name: string): string {
  const value = argumentValue(a, name);
  switch (actionEntry(a.type)?.args[name]?.kind) {
    case 'place': {
      const p = value as Partial<Point> | undefined;
      return `${Math.round(Number(p?.x))},${Math.round(Number(p?.y))}`;
    }
    case 'modifiers':
    case 'keys':
      return Array.isArray(value) ? value.join('+') : '';
    case 'direction':
      return DIRECTIONS[String(value)] ?? '';
    case 'text':
    case 'number':
      return clip(visible(String(value)), 400);
    case undefined:
      return '';
  }
}
/** "click at 340,220"; not escaped. */
export function actionWords(a: Action): string {
  const phrase = actionEntry(a.type)?.words.find(([, ...of]) => of.every((n) => argumentValue(a, n) !== undefined));
  if (!phrase) return String(a.type);
  const [message, ...of] = phrase,
    words = message.replace(/\{(\d)\}/g, (_, i: string) => argumentWords(a, of[Number(i)] ?? '')),
    held = 'modifiers' in a && Array.isArray(a.modifiers) && a.modifiers.length > 0 ? a.modifiers.join('+') : '';
  return held === '' ? words : `${words} with ${held}`;
}
export const actionsWords = (actions: readonly Action[]): string =>
  actions.length > 0 ? actions.map(actionWords).join(', then ') : 'no action';

export const outcomeWords: Readonly<Record<OutcomeKind, string>> = {
  success: 'success',
  failure: 'failure',
  error: 'error',
  running: 'still running',
};
export const originWords: Readonly<Record<string, string>> = {
  rollout: 'training rollout',
  probe: 'evaluation episode',
  oracle: 'scripted demonstration',
  human: 'recorded by a person',
  imported: 'imported',
  hindsight: 'relabelled',
};
/** 2026-11-22 14:05 UTC. */
export const moment = (ms: number | undefined): string =>
  ms === undefined || !Number.isFinite(ms) || Math.abs(ms) > 8e15
    ? ''
    : `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toPrecision(2)} MB`;
