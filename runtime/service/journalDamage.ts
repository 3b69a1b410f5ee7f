import { join } from 'node:path';
import { nextTurn } from '../concurrency/turns.js';
import { readJournal } from '../data/store/journalReader.js';
import type { JournalDamage, RunPath } from '../protocol/types.js';
import { markOf } from './readers.js';

/** Journals checked before, by their marks, are not read again; the oldest are forgotten. */
const KEPT = 256;

/**
 * Whether the journal of a run that is over can be read from end to end. An index that was written before the damage
 * hides it, so every record's checksum is verified: 100 MB take a second, in batches between which the event loop turns.
 */
export class JournalDamages {
  readonly #found = new Map<string, Promise<JournalDamage | undefined>>();
  readonly #known = new Map<RunPath, { readonly mark: string; readonly damage: JournalDamage | undefined }>();

  async of(run: RunPath): Promise<JournalDamage | undefined> {
    const mark = await markOf(run),
      key = `${run} ${mark}`;
    let found = this.#found.get(key);
    if (!found) {
      this.#found.set(key, (found = damageOf(run)));
      for (const oldest of this.#found.keys()) {
        if (this.#found.size > KEPT) this.#found.delete(oldest);
        break;
      }
    }
    const damage = await found;
    this.#known.set(run, { mark, damage });
    return damage;
  }
  /** The damage that a check found in the journal as it is now; undefined also where no check was made. */
  known(run: RunPath, mark: string): JournalDamage | undefined {
    const k = this.#known.get(run);
    return k?.mark === mark ? k.damage : undefined;
  }
}

async function damageOf(run: RunPath): Promise<JournalDamage | undefined> {
  let bytes = 0,
    stretches = 0;
  const read = readJournal(join(run, 'journal'), {
    // A record that was being written when a process died is no damage: what it said was never acknowledged.
    onDamage: (d) => {
      if (d.tail) return;
      bytes += d.to - d.from;
      stretches++;
    },
  });
  for await (const batch of read) if (batch.length > 0) await nextTurn();
  return stretches === 0 ? undefined : { bytes, stretches };
}
