import { readFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import { toRunError, type RunError, ServiceError } from '../domain/index.js';
import { orUndefined, settled } from '../concurrency/failures.js';
import type { ProcessEntry } from '../concurrency/process.js';
import type { RunReader } from '../data/store/runStore.js';
import type { Ledger, RunPath, RunState, RunSummary } from '../protocol/types.js';
import { chooseProvider } from '../cluster/provide.js';
import { Annotations } from '../annotations/annotations.js';
import { PersonalDesktops } from '../human/personalDesktops.js';
import type { RunFacts } from '../queries/facts.js';
import { KnownFacts } from './facts.js';
import { ActiveRuns } from './activeRuns.js';
import { AlertSender } from './alerts/alertSender.js';
import { endAlert } from './alerts/endWords.js';
import { endOf, ledgerFromIndex, ledgerOf, summaryOf } from '../queries/overview.js';
import { alertOf, RunSession, type SessionPlan } from './runSession.js';
import { RunWriters } from '../human/runWriter.js';
import { labelled } from '../protocol/runLabel.js';
import { labelOf } from './runLabels.js';
import { isWeightless, keepSummary, leaveRunning, leaveSummary } from './summaryFile.js';
import { JournalDamages } from './journalDamage.js';
import { cancelled, unlessAborted } from './unlessAborted.js';
import { Jobs, type JobOptions } from './jobs.js';
import { Readers, markOf } from './readers.js';
import type { Broadcast, ServiceLog, StudioServiceOptions } from './types.js';

/** A run to read: the active one's own store, or a reader. `alive`: somebody writes it. */
export interface OpenRun {
  readonly reader: RunReader;
  readonly alive: boolean;
  readonly session?: RunSession;
  readonly facts: RunFacts;
}
type Summary = Omit<RunSummary, 'state' | 'status'> & { readonly state: RunState };

/** The state that the handlers share: the active run, long jobs, open readers, listeners. */
export class Studio {
  readonly entry: ProcessEntry;
  readonly cacheDir: string;
  readonly #log: ServiceLog;
  /** The newest lines of the log, for diagnostics. */
  readonly recent: string[] = [];
  readonly readers: Readers;
  readonly damage = new JournalDamages();
  /** Desktops of people and of replays. */
  readonly own = new PersonalDesktops();
  /** The annotations of every run. */
  readonly annotations = new Annotations((text) => void this.log('warn', text));
  session: RunSession | undefined;
  /** A newer daemon waits until this one has nothing to do: nothing begins by itself any more. */
  draining = false;
  /** The record of active runs, which the next daemon goes on with. */
  readonly activeRuns: ActiveRuns;
  /** Passes on what somebody should look at, with or without a window. */
  readonly alerts: AlertSender;
  /** Writers of what people add to runs, active or not. */
  readonly writers: RunWriters;
  readonly #facts = new KnownFacts();
  readonly #jobs = new Jobs();
  readonly #broadcast = new Set<(b: Broadcast) => void>();
  readonly #idle = new Set<() => void>();
  readonly #sessions = new Set<(s: RunSession | undefined) => void>();
  #starting: Promise<unknown> | undefined;
  #closing: Promise<void> | undefined;
  #now = false;
  #keep = false;
  readonly #stopping = new AbortController();

  constructor(o: StudioServiceOptions) {
    this.entry = o.entry;
    this.cacheDir = o.cacheDir;
    this.#log = o.log;
    this.activeRuns = new ActiveRuns(o.storage ?? o.cacheDir, {
      failed: (message) => {
        this.log('warn', message);
      },
    });
    this.alerts = new AlertSender({ warn: (text) => this.log('warn', text), targets: o.alerts });
    this.readers = new Readers(o.entry, (run) => {
      void this.announce(run);
    });
    const active = (): RunSession | undefined => this.session;
    this.writers = new RunWriters({
      entry: o.entry,
      get session() {
        return active();
      },
      forget: (run) => {
        this.readers.forget(run);
      },
      changed: (run) => {
        void this.announce(run);
      },
      poolChanged: (run) => {
        this.broadcast({ method: 'pool/changed', params: { run } });
      },
    });
  }

  log: ServiceLog = (level, message) => {
    this.recent.push(`${new Date().toISOString()} ${level} ${message}`);
    if (this.recent.length > 500) this.recent.shift();
    this.#log(level, message);
  };
  broadcast(b: Broadcast): void {
    for (const l of [...this.#broadcast]) l(b);
  }
  onBroadcast(l: (b: Broadcast) => void): () => void {
    this.#broadcast.add(l);
    return () => void this.#broadcast.delete(l);
  }
  onIdle(l: () => void): () => void {
    this.#idle.add(l);
    return () => void this.#idle.delete(l);
  }
  /** Called when a run begins (with it) and when it has ended. */
  onSession(l: (s: RunSession | undefined) => void): void {
    this.#sessions.add(l);
  }
  get busy(): boolean {
    return this.session !== undefined || this.#starting !== undefined || this.#jobs.any;
  }

  /** Throws `busy` while a run, a start or an exclusive job is under way: two would take each other's processor. */
  assertIdle(): void {
    if (this.#closing) throw closed();
    if (this.session)
      throw new ServiceError(
        'busy',
        `The run ${this.session.plan.run} is active.`,
        `Stop it first, or watch it: ${this.session.run}`,
      );
    if (this.#starting)
      throw new ServiceError('busy', 'A run is being started.', 'Wait until it has started, or cancel it.');
    const job = this.#jobs.exclusive;
    if (job !== undefined) throw new ServiceError('busy', job, 'Wait until it is over, or cancel it.');
  }

  /**
   * `signal`: whoever asked wants it no more. Before anything was made it is as if never asked; a run that has begun is
   * stopped cleanly. Then rejects with `cancelled`.
   */
  async begin(plan: SessionPlan, signal?: AbortSignal): Promise<RunSession> {
    this.assertIdle();
    const run = plan.dir,
      known = this.activeRuns.runs.some((r) => r.run === run),
      starting: Promise<RunSession> = unlessAborted(this.checkDesktops(plan), signal)
        .then(async () => {
          await this.writers.closed(run);
          this.readers.forget(run);
          this.#facts.forget(run);
          await this.activeRuns.begin({
            run,
            id: plan.run,
            name: plan.config.name,
            minutes: plan.config.budget.minutes,
            ...(plan.alone ? { alone: true } : {}),
          });
          return RunSession.start(plan, {
            entry: this.entry,
            note: (text) => {
              this.log('info', `${plan.run}: ${text}`);
            },
            status: (status) => {
              if (!this.session) return;
              void this.activeRuns.saw(run, this.session.progress());
              this.broadcast({ method: 'run/status', params: { run, status, ledger: this.ledger(this.session) } });
            },
            alert: (a) => this.broadcast({ method: 'run/alert', params: alertOf(plan, a) }),
            state: (state) => {
              this.broadcast({ method: 'run/changed', params: { run, state } });
            },
          });
        })
        .then(async (session) => {
          if (!signal?.aborted) return session;
          this.log('info', `Run ${plan.run} was cancelled while it was starting`);
          await session.stop(true);
          void this.announce(run);
          throw cancelled();
        });
    this.#starting = starting;
    try {
      const session = (this.session = await starting.catch(async (e: unknown) => {
        // A resumed run that cannot go on now is tried again by the next daemon.
        if (!known) await this.activeRuns.end(run);
        throw e;
      }));
      this.log('info', `Run ${plan.run} in ${run}`);
      this.broadcast({ method: 'run/changed', params: { run, state: 'running' } });
      void leaveRunning(plan, session.status());
      for (const l of this.#sessions) l(session);
      void session.ended.then(({ error }) => {
        // A run that ends because the machine goes down, or because of a fault of ours, is resumed by the next daemon.
        if (!this.#keep) void this.activeRuns.end(run);
        this.session = undefined;
        if (error) this.log('error', `${plan.run}: ${error.message} ${error.remedy}`);
        for (const l of this.#sessions) l(undefined);
        void this.announce(run);
        if (!this.#closing) void this.#sayEnded(run, error);
        this.settle();
      });
      return session;
    } finally {
      this.#starting = undefined;
      if (!this.session) this.settle();
    }
  }
  /** Leaves the run's summary for windows, and sends an alert of its end: nobody may be looking at it. */
  async #sayEnded(run: RunPath, error: RunError | undefined): Promise<void> {
    const r = await orUndefined(this.summary(run), 'the next list makes it');
    if (r) this.alerts.send(endAlert(r, error));
  }
  /** Reports at once what desktops lack, rather than let the run fail a moment later. */
  async checkDesktops(plan: SessionPlan): Promise<void> {
    const provider = await chooseProvider(plan.config.desktops);
    await provider.dispose();
  }

  ledger(s: RunSession): Ledger {
    const { ledger, stepLedger } = s.stats();
    return ledgerOf(ledger, stepLedger);
  }

  /** A job that keeps the daemon alive; its signal fires with the caller's and when the service closes. */
  async job<T>(
    what: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
    o: JobOptions = {},
  ): Promise<T> {
    if (this.#closing) throw closed();
    try {
      return await this.#jobs.run(what, signal, work, o);
    } finally {
      this.settle();
    }
  }

  /** The session of this run; `not.found` when it is not the active one. */
  active(run: RunPath): RunSession {
    if (this.session?.run === resolve(run)) return this.session;
    throw new ServiceError(
      'not.found',
      `The run ${run} is not active here.`,
      'Resume it, or list the runs again: it may have ended.',
    );
  }

  /** Rejects with `not.found` for a folder that is not a run. */
  async mustExist(run: RunPath): Promise<void> {
    await this.read(run, () => Promise.resolve());
  }
  /** Reads a run while `f` runs. */
  async read<T>(run: RunPath, f: (r: OpenRun) => Promise<T>): Promise<T> {
    const dir = resolve(run),
      { session } = this;
    if (session?.run === dir) {
      if (!session.store.closed) {
        try {
          return await f({
            reader: session.store,
            alive: true,
            session,
            facts: await this.#facts.of(dir, session.store),
          });
        } catch (e) {
          if (!session.store.closed) throw e;
        }
      }
      // The run ended meanwhile: the answer is read from its folder.
      await session.ended;
    }
    const written = await this.writers.reader(dir);
    if (written) {
      try {
        return await f({ reader: written, alive: false, facts: await this.#facts.of(dir, written) });
      } catch (e) {
        if (!written.closed) throw e;
      }
    }
    await this.writers.closed(dir);
    const r = await this.readers.use(dir);
    try {
      return await f({ reader: r.reader, alive: r.alive, facts: await this.#facts.of(dir, r.reader) });
    } finally {
      r.release();
    }
  }
  async stateOf(r: OpenRun): Promise<Pick<RunSummary, 'state' | 'endedAt' | 'error'>> {
    if (r.session) return { state: r.session.status().state };
    return r.alive ? { state: 'elsewhere' } : endOf(r.reader);
  }
  /**
   * A run in one line. Of a run that is over it is kept on disk beside a mark of its journal, so that a long list opens
   * no index.
   */
  async summary(run: RunPath): Promise<RunSummary> {
    const summary = await this.#summary(resolve(run)),
      left = summary.status ? undefined : this.activeRuns.leftBecause(summary.run);
    const known = (await isWeightless(summary)) ? { ...summary, weightless: true } : summary,
      said = labelled(known, await labelOf(known.run));
    return left === undefined ? said : { ...said, error: { kind: 'internal', message: left, remedy: '' } };
  }
  async #summary(dir: RunPath): Promise<RunSummary> {
    const session = this.session?.run === dir ? this.session : undefined,
      mark = session ? '' : await markOf(dir);
    const file = join(
      this.cacheDir,
      'summaries',
      `${createHash('sha256').update(dir).digest('hex').slice(0, 32)}.json`,
    );
    if (!session) {
      const kept = await orUndefined(
        readFile(file, 'utf8').then((t) => JSON.parse(t) as { mark: string; version: number; summary: Summary }),
        'a summary that is not there, or damaged, is made again',
      );
      if (kept?.mark === mark && kept.version === SUMMARY_VERSION) return this.#withDamage(kept.summary, mark);
    }
    return this.read(dir, async (r) => {
      const summary = { ...(await summaryOf(r.reader)), ...(await this.stateOf(r)) };
      if (r.session)
        return {
          ...summary,
          version: Math.max(summary.version, r.session.status().version),
          status: r.session.status(),
        };
      if (!r.alive) {
        await keepSummary(file, { mark, version: SUMMARY_VERSION, summary }).catch((e: unknown) => {
          this.log('warn', `A run's summary could not be kept: ${toRunError(e).message}`);
        });
        await leaveSummary(dir, summary);
      }
      return this.#withDamage(summary, mark);
    });
  }
  #withDamage(summary: Summary, mark: string): Summary {
    const damage = this.damage.known(summary.run, mark);
    return damage ? { ...summary, damage } : summary;
  }
  ledgerOf(r: OpenRun): Promise<Ledger> {
    return r.session ? Promise.resolve(this.ledger(r.session)) : ledgerFromIndex(r.reader);
  }

  /** Fires when the service closes. */
  get closing(): AbortSignal {
    return this.#stopping.signal;
  }
  /** From now on a run that ends was not ended by anybody: the next daemon goes on with it. */
  keepActive(): void {
    this.#keep = true;
  }
  /** Whatever ends this process while the run closes: a person has ended it, and the next daemon does not go on with it. */
  endActive(): void {
    if (this.session && !this.#keep) void this.activeRuns.end(this.session.run);
  }
  /** Stops what is active; `now` without grace, also when a gentler close is under way. */
  close(now: boolean): Promise<void> {
    this.#now ||= now;
    this.#stopping.abort();
    if (now) {
      void this.session?.stop(true);
      void this.alerts.close(true);
    }
    this.#closing ??= (async () => {
      this.#jobs.cancelAll();
      await settled(this.#starting);
      this.endActive();
      const { session } = this;
      await Promise.all([session?.stop(this.#now), this.own.close()]);
      // Writes the summary for windows that list the run while no runtime is there.
      if (session) await orUndefined(this.summary(session.run), 'it is listed without what it came to');
      await this.writers.close();
      await this.annotations.close();
      await this.readers.close();
      await this.activeRuns.written();
      await this.alerts.close(this.#now);
    })();
    return this.#closing;
  }

  /** Tells clients that a run's state may have changed. */
  async announce(run: RunPath): Promise<void> {
    if (this.#closing) return;
    const state = await this.read(run, (r) => this.stateOf(r)).then(
      (s) => s.state,
      () => 'interrupted' as const,
    );
    this.broadcast({ method: 'run/changed', params: { run, state } });
  }
  /** Tells who waits for the end of all work, where there is none. */
  settle(): void {
    if (!this.busy) for (const l of [...this.#idle]) l();
  }
}

const closed = (): ServiceError =>
  new ServiceError('draining', 'The runtime is stopping.', 'Start it again when it has stopped.');
/** Raise when a summary holds something new. */
const SUMMARY_VERSION = 3;
