import { classOfCharacter, spells, type EmbeddedPolicySpec } from '../../domain/index.js';
import { nextTurn } from '../../concurrency/turns.js';
import { tokenizeInstruction } from '../../policy/embedded/instruction.js';
import type { Tasks } from '../../tasks/open.js';

/** Training tasks of each family whose words are looked at. */
const SEEDS = 12;
/** Words that are named in one note. */
const NAMED = 8;
/** High enough that no token is left out. */
const ALL = 1000;

/** Notes for people on how an instruction differs from those that an embedded policy has learned from. */
export async function instructionNotes(
  spec: EmbeddedPolicySpec,
  tasks: Pick<Tasks, 'families' | 'demoSeeds' | 'source'> | undefined,
  instruction: string,
): Promise<readonly string[]> {
  const notes: string[] = [],
    // Parts of a token are no words of the instruction.
    whole = { ...spec, parts: false },
    taken = tokenizeInstruction(whole, instruction),
    all = tokenizeInstruction({ ...whole, instruction: { ...spec.instruction, maxTokens: ALL } }, instruction),
    kept = new Set(taken.map((t) => t.text)),
    left = all.filter((t) => !kept.has(t.text)).map((t) => t.text);
  if (left.length > 0)
    notes.push(`The policy takes ${spec.instruction.maxTokens} words at most. It is not told: ${named(left)}.`);
  const illegible = spells(spec)
    ? taken.filter((t) => [...t.text].some((c) => classOfCharacter(c) === undefined)).map((t) => t.text)
    : [];
  if (illegible.length > 0)
    notes.push(
      `The policy cannot read every character of ${named(illegible)}: it finds such a text on the screen by its other characters.`,
    );
  const known = tasks && (await wordsOf(spec, tasks)),
    // Quoted texts, numbers and paths are copied or looked for, and need not be known.
    words = taken.filter((t) => t.kind === 'word').map((t) => t.text),
    unknown = known ? words.filter((w) => !known.has(w.toLowerCase())) : [];
  if (known && unknown.length > 0)
    notes.push(
      unknown.length === words.length
        ? `None of these words was in an instruction that it learned from: ${named(unknown)}. What it does then says little of the policy.`
        : `No instruction that it learned from had ${named(unknown)}. The policy goes by the words it knows.`,
    );
  return notes;
}

const named = (words: readonly string[]): string => {
  const unlike = [...new Set(words)],
    shown = unlike.slice(0, NAMED).map((w) => `“${w.slice(0, 40)}”`);
  return unlike.length > NAMED ? `${shown.join(', ')} and ${unlike.length - NAMED} more` : shown.join(', ');
};

/** Words of the instructions of training tasks, in lower case. A family at a time: drawing tasks takes a while. */
async function wordsOf(
  spec: EmbeddedPolicySpec,
  tasks: Pick<Tasks, 'families' | 'demoSeeds' | 'source'>,
): Promise<ReadonlySet<string>> {
  const words = new Set<string>(),
    seeds = tasks.demoSeeds.length > 0 ? tasks.demoSeeds.slice(0, SEEDS) : [0];
  for (const f of tasks.families)
    for (const seed of seeds) {
      await nextTurn();
      for (const t of tokenizeInstruction({ ...spec, parts: false }, tasks.source.task(f.id, seed).instruction))
        words.add(t.text.toLowerCase());
    }
  return words;
}
