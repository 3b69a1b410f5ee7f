/** Reads a run's trajectories part by part, and follows what changes while somebody writes the run. */
import type { RunEvent } from '../../runtime/protocol/types.js';
import { trajectoryEvents, type HostError, type Requester } from '../protocol.js';
import { hostErrorOf, type Host } from '../ui/host.js';
import { Rows } from './rows.js';

/** The first part is what is seen first; the rest come in parts that no thread notices. */
const firstPart = 500,
  part = 5000;

export type LoaderHost = Requester<'trajectory/columns'> & Pick<Host, 'subscribe'>;
export interface Loaded {
  readonly run: string;
  readonly rows: Rows;
  /** Rows of the run, as far as known. */
  readonly total: number;
  /** Older ones that the run only counts. */
  readonly older: number;
  readonly done: boolean;
  readonly error?: HostError;
}

export class Loader {
  readonly #host: LoaderHost;
  readonly #changed: (urgent: boolean) => void;
  #abort: AbortController | undefined;
  #state: Loaded = { run: '', rows: new Rows(), total: 0, older: 0, done: false };

  /** `urgent`: somebody waits for it; else the run goes on by itself. */
  constructor(host: LoaderHost, changed: (urgent: boolean) => void) {
    this.#host = host;
    this.#changed = changed;
  }
  get state(): Loaded {
    return this.#state;
  }
  /** The run that is shown is read again into its rows, so that whoever reads them keeps their place. */
  async open(run: string): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController()),
      again = run === this.#state.run,
      rows = again ? this.#state.rows : new Rows(),
      whole = again && this.#state.done;
    this.#state = again ? { ...this.#state, error: undefined } : { run, rows, total: 0, older: 0, done: false };
    this.#changed(true);
    try {
      let before: number | undefined;
      for (;;) {
        const p = await this.#host.request(
          'trajectory/columns',
          { run, limit: before === undefined ? firstPart : part, ...(before === undefined ? {} : { before }) },
          abort.signal,
        );
        if (abort.signal.aborted) return;
        rows.append(p.columns, again);
        rows.setOver(!p.alive);
        const done = p.next === undefined;
        this.#state = {
          ...this.#state,
          total: Math.max(p.total ?? this.#state.total, rows.length),
          older: p.older ?? this.#state.older,
          done: done || whole,
        };
        if (before === undefined) this.#host.subscribe({ run, sinceSeq: p.seq, types: trajectoryEvents });
        this.#changed(before === undefined || done);
        if (done) return;
        before = p.next;
      }
    } catch (e) {
      if (abort.signal.aborted) return;
      this.#state = { ...this.#state, error: hostErrorOf(e) };
      this.#changed(true);
    }
  }
  /** Takes the run's events; returns the ids of rollouts that have another last screen now. */
  events(run: string, events: readonly RunEvent[]): readonly string[] {
    const { rows } = this.#state,
      moved: string[] = [];
    if (run !== this.#state.run || events.length === 0) return moved;
    for (const e of events)
      switch (e.type) {
        case 'closed':
          rows.setOver(true);
          break;
        case 'started':
        case 'ended':
          // Somebody works on the run again.
          if (e.type === 'started') rows.setOver(false);
          rows.put(e.row);
          moved.push(e.row.rollout);
          break;
        case 'step':
          rows.stepped(e.rollout, e.step.index + 1);
          break;
        case 'group':
          for (const m of e.group.members)
            if (!m.injected)
              rows.moved(
                m.rollout,
                m.retired === undefined ? 'grouped' : `retired:${m.retired}`,
                m.advantage === undefined ? {} : { advantage: m.advantage },
              );
          break;
        case 'trained':
          for (const r of e.rollouts) rows.moved(r, 'trained', { update: e.version });
          break;
        default:
      }
    this.#state = { ...this.#state, total: Math.max(this.#state.total, rows.length) };
    this.#changed(false);
    return moved;
  }
}
