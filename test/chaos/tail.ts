import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { InFlight } from './inFlight.js';
import { checksum, segmentsOf, type Found } from './journal.js';

const MAGIC = 0xd5a71e55,
  HEADER = 24;

/** Follows a journal that is being written, and remembers what was there: what was seen must never go away. */
export class Tail {
  /** Checksums of records by number. */
  readonly seen = new Map<number, number>();
  readonly #run: string;
  readonly #told: (e: Found['event']) => void;
  readonly #counts = new Map<string, number>();
  readonly #errors = new Map<string, number>();
  /** Rollouts that ended with a verdict. */
  readonly recorded = new Set<string>();
  readonly flight = new InFlight();
  #mark = { at: 0, first: undefined as number | undefined };
  #file: string | undefined;
  #at = 0;
  versions = 0;

  /** `told` hears every record that is new, in order. */
  constructor(run: string, told: (e: Found['event']) => void = () => {}) {
    this.#run = run;
    this.#told = told;
  }
  count(type: string): number {
    return this.#counts.get(type) ?? 0;
  }
  /** Trajectories that ended in an error of this kind. */
  errors(kind: string): number {
    return this.#errors.get(kind) ?? 0;
  }
  /** Recovery counts from now on. */
  mark(): void {
    this.poll();
    this.#mark = { at: performance.now(), first: undefined };
  }
  /** ms from the mark to the first step that was accepted, or lesson that was learned; undefined before it. */
  get recovery(): number | undefined {
    return this.#mark.first === undefined ? undefined : this.#mark.first - this.#mark.at;
  }

  /** Takes in what is whole. */
  poll(): void {
    const journal = join(this.#run, 'journal');
    if (!existsSync(journal)) return;
    const files = segmentsOf(journal);
    let file = this.#file ?? files[0];
    while (file !== undefined) {
      this.#file = file;
      this.#read(file);
      file = files[files.indexOf(file) + 1];
      if (file !== undefined) this.#at = 0;
    }
  }

  #read(file: string): void {
    const f = openSync(file, 'r');
    try {
      const { size } = fstatSync(f);
      this.#at = Math.min(this.#at, size);
      const b = Buffer.alloc(size - this.#at);
      readSync(f, b, 0, b.length, this.#at);
      const magic = Buffer.alloc(4);
      magic.writeUInt32LE(MAGIC);
      let at = 0;
      while (at + HEADER <= b.length) {
        const end = at + HEADER + b.readUInt32LE(at + 4);
        const whole =
          b.readUInt32LE(at) === MAGIC &&
          end <= b.length &&
          checksum(b.subarray(at + 12, end)) === b.readUInt32LE(at + 8);
        if (!whole) {
          // The header of a segment, a damaged stretch, or a record that is not whole yet.
          const next = b.indexOf(magic, at + 1);
          if (next < 0) break;
          at = next;
          continue;
        }
        this.seen.set(b.readDoubleLE(at + 16), b.readUInt32LE(at + 8));
        this.#take(
          JSON.parse(b.toString('utf8', at + HEADER, at + HEADER + b.readUInt32LE(at + 12))) as Found['event'],
        );
        at = end;
      }
      this.#at += at;
    } finally {
      closeSync(f);
    }
  }

  #take(e: Found['event']): void {
    this.#counts.set(e.type, this.count(e.type) + 1);
    if (e.type === 'batch.trained') this.versions++;
    if (e.type === 'rollout.step' || e.type === 'checkpoint') this.#mark.first ??= performance.now();
    if (e.type === 'trajectory.recorded') {
      const { id, provenance, outcome } = e['head'] as {
        id: string;
        provenance: { kind: string };
        outcome: { kind: string; error?: { kind: string } };
      };
      const kind = outcome.error?.kind;
      if (kind !== undefined) this.#errors.set(kind, this.errors(kind) + 1);
      else if (provenance.kind === 'rollout') this.recorded.add(id);
    }
    this.flight.take(e);
    this.#told(e);
  }
}
