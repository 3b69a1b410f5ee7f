import type { CheckRow } from '../../protocol/types.js';

/** Rows of checks about one thing, as they are found. */
export class Table {
  readonly rows: CheckRow[] = [];
  readonly #of: string;
  constructor(of: string) {
    this.#of = of;
  }

  ok(name: string, detail: string): void {
    this.rows.push({ name: this.#name(name), ok: true, level: 'required', detail });
  }
  /** A run cannot start, or would train something else than is meant. */
  wrong(name: string, detail: string, remedy: string): void {
    this.rows.push({ name: this.#name(name), ok: false, level: 'required', detail, remedy });
  }
  /** A run starts all the same. */
  doubtful(name: string, detail: string, remedy: string): void {
    this.rows.push({ name: this.#name(name), ok: false, level: 'optional', detail, remedy });
  }
  check(name: string, good: boolean, detail: { readonly ok: string; readonly not: string }, remedy: string): void {
    if (good) this.ok(name, detail.ok);
    else this.wrong(name, detail.not, remedy);
  }
  #name(name: string): string {
    return this.#of === '' ? name : `${this.#of}: ${name}`;
  }
}
