import type { ProviderChoice } from '../domain/index.js';
import { createPool } from '../cluster/pool.js';
import type { Desktop, DesktopPool, DesktopProvider, Lease, SettleOptions } from '../cluster/types.js';
import type { RunConfig } from '../config/index.js';
import { type DesktopRow, type RunPath } from '../domain/index.js';
import { settled } from '../concurrency/failures.js';
import { nextTurn } from '../concurrency/turns.js';
import { DesktopRegistry } from '../rollout/desktopRegistry.js';
import { chooseProvider, settleOf, specOf } from '../cluster/provide.js';

export interface PersonalDesktopRequest {
  /** Configuration of the run whose task is set up on it: screen, memory, provider. */
  readonly config: RunConfig;
  /** The run it is shown with. */
  readonly run: RunPath;
  /** Instead of the configured one. */
  readonly provider?: ProviderChoice | undefined;
  /** Purpose of the desktop, as a label on its container. */
  readonly label: string;
  readonly signal: AbortSignal;
}
/**
 * A fresh desktop outside any run's pool. It is listed and can be watched while it is open; say what it does with
 * `registry.begin`, `phase`, `progress`.
 */
export interface PersonalDesktop {
  readonly desktop: Desktop;
  readonly registry: DesktopRegistry;
  readonly lease: Lease;
  readonly settle: SettleOptions;
  /** Ends when the desktop is gone. Idempotent. */
  close(): Promise<void>;
}

/** Desktops of this process that belong to no run's pool: of people, and of replays. */
export class PersonalDesktops {
  readonly #open = new Map<DesktopRegistry, { readonly run: RunPath; readonly close: () => Promise<void> }>();
  readonly #listeners = new Set<(desktop: string, row: DesktopRow | undefined) => void>();

  add(registry: DesktopRegistry, run: RunPath, close: () => Promise<void>): () => void {
    this.#open.set(registry, { run, close });
    const off = registry.onChange((desktop, row) => {
      for (const l of [...this.#listeners]) l(desktop, row && { ...row, run });
    });
    return () => {
      off();
      this.#open.delete(registry);
    };
  }
  rows(): DesktopRow[] {
    return [...this.#open].flatMap(([registry, { run }]) => registry.rows().map((r) => ({ ...r, run })));
  }
  registryOf(desktop: string): DesktopRegistry | undefined {
    return [...this.#open.keys()].find((b) => b.desktop(desktop) !== undefined);
  }
  onChange(l: (desktop: string, row: DesktopRow | undefined) => void): () => void {
    this.#listeners.add(l);
    return () => {
      this.#listeners.delete(l);
    };
  }
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((o) => o.close()));
  }
}

/**
 * Starts a desktop and waits until it is ready. Rejects with `desktop.unavailable`, `desktop.start` or `cancelled`, and
 * leaves nothing then.
 */
export async function openPersonalDesktop(own: PersonalDesktops, r: PersonalDesktopRequest): Promise<PersonalDesktop> {
  const desktops = r.provider === undefined ? r.config.desktops : { ...r.config.desktops, provider: r.provider },
    registry = new DesktopRegistry();
  const stop = new AbortController(),
    signal = AbortSignal.any([r.signal, stop.signal]);
  let provider: DesktopProvider | undefined,
    pool: DesktopPool | undefined,
    lease: Lease | undefined,
    closing: Promise<void> | undefined;
  const open = async (): Promise<Lease> => {
    provider = registry.wrap(await chooseProvider(desktops));
    pool = createPool({ provider, spec: specOf(desktops, { run: r.label }), size: 1, maxFailures: 2 });
    registry.attach(pool);
    return (lease = await pool.lease({ signal }));
  };
  const close = (): Promise<void> =>
    (closing ??= (async () => {
      stop.abort();
      await settled(opened);
      // A pool that closes takes down what is given back; it does not reset it.
      const closed = pool?.close();
      lease?.release();
      await closed;
      if (pool) registry.detach(pool);
      await provider?.dispose();
      // The row that is gone is told in a turn of its own.
      await nextTurn();
      forget();
    })());
  const forget = own.add(registry, r.run, close),
    opened = open();
  try {
    const l = await opened;
    return { desktop: l.desktop, registry, lease: l, settle: settleOf(desktops), close };
  } catch (e) {
    await close();
    throw e;
  }
}
