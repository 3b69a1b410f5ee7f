import { random, RETIRE_REASONS, type Random } from '../../../runtime/domain/index.js';
import type { CodedColumn, TrajectoryColumns } from '../../../runtime/protocol/types.js';

const families = ['press-button', 'form-one', 'menu-choose', 'slider-set', 'window-close', 'calc-sum'];
const begin = Date.UTC(2026, 10, 22, 6);

/** Made-up trajectories, newest first: the same for the same number. */
export class TableData {
  readonly total: number;
  readonly alive: boolean;
  /** `alive`: somebody is writing the run. */
  constructor(total: number, alive = true) {
    this.alive = alive;
    this.total = total;
  }
  /** As the daemon answers `trajectory/columns`. */
  part(p: { readonly before?: number; readonly limit: number }): {
    readonly columns: TrajectoryColumns;
    readonly total?: number;
    readonly next?: number;
    readonly seq: number;
    readonly alive: boolean;
  } {
    const end = p.before ?? this.total,
      from = Math.max(0, end - p.limit),
      ids = Array.from({ length: end - from }, (_, k) => end - 1 - k);
    return {
      columns: columnsFor(ids),
      ...(p.before === undefined ? { total: this.total } : {}),
      ...(from > 0 ? { next: from } : {}),
      seq: 10,
      alive: this.alive,
    };
  }
}

function columnsFor(ids: readonly number[]): TrajectoryColumns {
  const rows = ids.map(rowFor),
    coded = <V extends string>(of: (r: ReturnType<typeof rowFor>) => V): CodedColumn<V> => {
      const values = [...new Set(rows.map(of))];
      return { values, at: rows.map((r) => values.indexOf(of(r))) };
    },
    all = <V>(of: (r: ReturnType<typeof rowFor>) => V): V[] => rows.map(of);
  return {
    rollout: all((r) => r.id),
    task: coded((r) => r.task),
    family: coded((r) => r.family),
    instruction: coded((r) => r.instruction),
    outcome: coded((r) => r.outcome),
    origin: coded((r) => r.origin),
    ledger: coded((r) => r.ledger),
    steps: all((r) => r.steps),
    reward: all((r) => r.reward),
    entropy: all((r) => r.entropy),
    advantage: all((r) => r.advantage),
    weight: all((r) => r.weight),
    versionMin: all((r) => r.version),
    versionMax: all((r) => r.version + (r.steps > 20 ? 1 : 0)),
    update: all((r) => (r.ledger === 'trained' ? r.version + 2 : null)),
    startedAt: all((r) => r.at),
    endedAt: all((r) => r.at + r.steps * 900),
    flags: all((r) => r.flags),
  };
}
function rowFor(n: number) {
  const r: Random = random(`row${n}`),
    probe = n % 23 === 0,
    family = `desk/${families[(probe ? (n / 23) % 8 : n) % families.length]!}`,
    outcome = n % 37 === 0 ? ('error' as const) : r.next() < 0.6 ? ('success' as const) : ('failure' as const),
    trained = !probe && outcome !== 'error' && r.next() < 0.7,
    // The same held-out tasks at every evaluation.
    seed = probe ? 1000 + ((n / 23) % 8) : (n * 7) % 211;
  return {
    id: `r-${String(n).padStart(6, '0')}`,
    family,
    task: `${family}#${seed}`,
    instruction: `In the ${family.slice(5).replace('-', ' ')} window, choose entry ${seed} and confirm it`,
    outcome,
    origin: probe ? ('probe' as const) : ('rollout' as const),
    ledger: probe
      ? ''
      : trained
        ? 'trained'
        : outcome === 'error'
          ? 'retired:error'
          : n % 5 === 0
            ? 'grouped'
            : `retired:${RETIRE_REASONS[3 + (n % 2)]!}`,
    steps: 2 + r.int(28),
    reward: outcome === 'error' ? null : outcome === 'success' ? 1 : 0,
    entropy: Math.round(r.next() * 2000) / 1000,
    advantage: trained ? Math.round(r.normal() * 1000) / 1000 : null,
    weight: trained ? Math.round(Math.min(1, 0.7 + r.next() * 0.5) * 1000) / 1000 : null,
    version: Math.floor(n / 40),
    at: begin + n * 8600,
    flags: outcome === 'failure' && n % 3 === 0 ? 1 : 0,
  };
}
