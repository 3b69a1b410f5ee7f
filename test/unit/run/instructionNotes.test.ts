import { describe, expect, it } from 'vitest';
import { GLYPH_SPEC, READER_SPEC, id, type FamilyId } from '../../../runtime/domain/index.js';
import { instructionNotes } from '../../../runtime/run/backends/instructionNotes.js';
import type { Tasks } from '../../../runtime/tasks/open.js';

/** Training tasks that ask for one thing each. */
const tasks = (...instructions: readonly string[]): Pick<Tasks, 'families' | 'demoSeeds' | 'source'> => ({
  families: [{ id: id<FamilyId>('f'), seeds: instructions.map((_, i) => i) }],
  demoSeeds: instructions.map((_, i) => i),
  source: { families: [], task: (_: FamilyId, seed: number) => ({ instruction: instructions[seed]! }) } as never,
});
const known = tasks('Press the "OK" button.', 'Type "abc" into the field.');
const notes = (instruction: string, spec = READER_SPEC): Promise<readonly string[]> =>
  instructionNotes(spec, known, instruction);

describe('what is to know of an instruction', () => {
  it('nothing, where all its words were learned; quoted words and numbers need not be', async () => {
    expect(await notes('Press the "Gizmo" button.')).toEqual([]);
    expect(await notes('Type 4711 into the field')).toEqual([]);
  });

  it('words that no training instruction had, in the order of the instruction', async () => {
    expect(await notes('Press the button and frobnicate the gizmo')).toEqual([
      'No instruction that it learned from had “and”, “frobnicate”, “gizmo”. The policy goes by the words it knows.',
    ]);
    expect(await notes('frobnicate gizmos')).toEqual([
      'None of these words was in an instruction that it learned from: “frobnicate”, “gizmos”. What it does then says little of the policy.',
    ]);
  });

  it('words beyond what it takes, and characters that it cannot read', async () => {
    const long = Array.from({ length: READER_SPEC.instruction.maxTokens + 2 }, (_, i) => `word${i}`),
      all = await instructionNotes(READER_SPEC, undefined, long.join(' '));
    expect(all).toEqual([
      `The policy takes ${READER_SPEC.instruction.maxTokens} words at most. It is not told: “word${long.length - 2}”, “word${long.length - 1}”.`,
    ]);
    // Parts of a token that find no room are no words.
    expect(await instructionNotes(READER_SPEC, undefined, `${'word '.repeat(20)}"B4" and "C5"`)).toEqual([]);
    expect(await notes('Press the "Größe" button')).toEqual([
      'The policy cannot read every character of “Größe”: it finds such a text on the screen by its other characters.',
    ]);
    // That of version 0.1 does not spell.
    expect(await notes('Press the "Größe" button', GLYPH_SPEC)).toEqual([]);
  });

  it('says nothing of words where the tasks are not here, and names no more than a few', async () => {
    expect(await instructionNotes(READER_SPEC, undefined, 'frobnicate')).toEqual([]);
    const [note] = await notes(
      `press ${Array.from({ length: 11 }, (_, i) => `nonsense${String.fromCharCode(97 + i)}`).join(' ')}`,
    );
    expect(note).toContain('and 3 more');
  });
});
