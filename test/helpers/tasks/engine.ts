import { expect } from 'vitest';
import type { Action, ErrorKind } from '../../../runtime/domain/index.js';
import { StudioError } from '../../../runtime/domain/index.js';
import { createTaskEngine } from '../../../runtime/tasks/index.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { desk } from './images.js';
import { never, type FakeDesktop } from './fakeDesktop.js';
import { localMetrics } from './localMetrics.js';

export const engine = createTaskEngine({ metrics: localMetrics, image: desk });
export const done: Action = { type: 'finished' },
  fail: Action = { type: 'fail' };
export const rule = (rules: unknown): unknown => ({ type: 'rule', rules });
export const text = (path = '/home/user/a.txt', dest = 'a.txt'): unknown => ({ type: 'vm_file', path, dest });
export const includes = (...include: string[]): unknown => rule({ include });
export const verify = async (task: Task, d: FakeDesktop, last: Action | undefined = done): Promise<number> =>
  (await engine.verify(task, d, last, never)).reward;
export async function errorOf(p: Promise<unknown>): Promise<StudioError> {
  try {
    await p;
  } catch (e) {
    expect(e).toBeInstanceOf(StudioError);
    return e as StudioError;
  }
  throw new Error('it did not reject');
}
export const kindOf = async (p: Promise<unknown>): Promise<ErrorKind> => (await errorOf(p)).kind;
