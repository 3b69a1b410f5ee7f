import { describe, expect, it } from 'vitest';
import { id, type TaskId } from '../../../runtime/domain/index.js';
import { mayHold } from '../../../runtime/tasks/mayHold.js';
import { fileIs, judgedBy, type Check } from '../../../runtime/tasks/suites/desk/kit.js';
import type { Task } from '../../../runtime/tasks/types.js';
import { task } from '../../helpers/rollout/fakes.js';

const asking = (name: string, ...checks: Check[]): Task =>
  task({ id: id<TaskId>(name), evaluator: judgedBy(...checks) });
const found = (...texts: string[]) => ({
  checks: texts.map((text) => ({ what: 'x', expected: 'y', found: text, score: 0 })),
});

describe('which siblings a verdict leaves', () => {
  const own = asking('a', fileIs('/p', 'Apple\n')),
    lemon = asking('a+1', fileIs('/p', 'Lemon\n'));

  it('only those that want what was found', () => {
    expect(mayHold(own, found('Lemon ⏎ '), lemon)).toBe(true);
    expect(mayHold(own, found('Melon ⏎ '), lemon)).toBe(false);
    // Nothing was pressed.
    expect(mayHold(own, found(''), lemon)).toBe(false);
    // Twice.
    expect(mayHold(own, found('Lemon ⏎ Lemon ⏎ '), lemon)).toBe(false);
  });

  it('all that look elsewhere, and all where nothing is known', () => {
    expect(mayHold(own, found('Lemon ⏎ '), asking('a+2', fileIs('/q', 'Plum\n')))).toBe(true);
    expect(mayHold(own, undefined, lemon)).toBe(true);
    expect(mayHold(own, found('x'), { ...lemon, evaluator: { func: 'infeasible' } })).toBe(true);
  });

  it('of several checks, those that were made are told: the first failed one is the last', () => {
    const two = asking('b', fileIs('/1', 'A\n'), fileIs('/2', 'B\n')),
      other = (x: string, y: string): Task => asking('b+1', fileIs('/1', x), fileIs('/2', y));
    expect(mayHold(two, found('C ⏎ '), other('C\n', 'whatever'))).toBe(true);
    expect(mayHold(two, found('C ⏎ '), other('D\n', 'B\n'))).toBe(false);
    expect(mayHold(two, found('A ⏎ ', 'C ⏎ '), other('A\n', 'C\n'))).toBe(true);
    expect(mayHold(two, found('A ⏎ ', 'C ⏎ '), other('A\n', 'D\n'))).toBe(false);
  });

  it('also where the command waits for what it wants', () => {
    const waits = (prints: string): Check => ({ command: 'running', prints, withinMs: 500 });
    expect(mayHold(asking('c', waits('a\n')), found('b ⏎ '), asking('c+1', waits('b\n')))).toBe(true);
    expect(mayHold(asking('c', waits('a\n')), found('b ⏎ '), asking('c+1', waits('c\n')))).toBe(false);
  });
});
