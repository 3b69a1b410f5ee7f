import type { JournalEntry, JournalPosition } from './journalReader.js';

/**
 * The newest records, kept so that followers in the writing process open no file: a look at the files costs six system
 * calls, and each follower looks twenty times a second.
 */
export class RecentRecords {
  readonly #most: number;
  #groups: { readonly entries: readonly JournalEntry[]; readonly bytes: number }[] = [];
  #bytes = 0;

  /** `most`: bytes that are kept, at least the last group. */
  constructor(most = 1 << 20) {
    this.#most = most;
  }

  /** A group of records that is on disk, in order and behind those before it. */
  add(entries: readonly JournalEntry[], bytes: number): void {
    this.#groups.push({ entries, bytes });
    this.#bytes += bytes;
    while (this.#groups.length > 1 && this.#bytes > this.#most) this.#bytes -= this.#groups.shift()!.bytes;
  }

  /** The records from a position on, by group; undefined when the position is before what is kept. */
  from(position: JournalPosition): JournalEntry[][] | undefined {
    const first = this.#groups[0]?.entries[0];
    if (first === undefined || position < first.position) return undefined;
    return this.#groups
      .filter((g) => g.entries.at(-1)!.position >= position)
      .map((g) => g.entries.filter((e) => e.position >= position));
  }
}
