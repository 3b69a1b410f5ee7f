import { StudioError, ServiceError } from '../domain/index.js';
import {
  prepareDemonstration,
  type Annotate,
  type DemonstrationHost,
  type DemonstrationRequest,
} from '../human/demonstration.js';
import { segmentOptions, type ControlSession, type SessionHost } from '../human/controlSession.js';
import { RecordSession } from '../human/record.js';
import { takeNext } from '../human/take.js';
import { TakeOverSession } from '../human/takeOver.js';
import { TrySession } from '../human/trySession.js';
import type { TryParams } from '../protocol/try.js';
import type { ControlState, TrajectoryFilter } from '../protocol/types.js';
import { listTrajectories } from '../queries/rows.js';
import { systemClock } from '../rollout/clock.js';
import type { HeldRollout } from '../run/runAccess.js';
import type { Studio } from './studio.js';
import { clearTries, openTry } from './tries.js';

const demonstrationHost = (s: Studio): DemonstrationHost => ({
  writers: s.writers,
  own: s.own,
  entry: s.entry,
  mustExist: (dir) => s.mustExist(dir),
  demonstrated: (dir, family, limit) =>
    s.read(dir, async ({ reader, alive }) => {
      const filter: TrajectoryFilter = {
        family,
        outcome: ['success'],
        provenance: ['human', 'oracle', 'imported'],
      };
      const { rows } = await listTrajectories(reader, { limit, filter }, alive);
      return new Set(rows.map((t) => t.task));
    }),
});

/** Tries at a time: one for each of two pages, beside whatever else uses the machine. */
const MOST_TRIES = 2;

/**
 * People at desktops. Sessions live here and not in a window, so a window that is reloaded finds its own again.
 */
export class ControlSessions {
  readonly #studio: Studio;
  readonly #annotate: Annotate;
  readonly #sessions = new Map<string, ControlSession>();
  /** Ends the job that keeps the daemon alive for a recording. */
  readonly #jobs = new Map<string, () => void>();
  /** Desktops that are asked for and not yet held. */
  readonly #taking = new Set<string>();
  /** Resolves when the leftovers of an earlier daemon's tries are removed. */
  readonly #cleared: Promise<void>;
  /** Tries that are being started. */
  #trying = 0;
  readonly #host: SessionHost;

  constructor(studio: Studio, annotate: Annotate) {
    this.#studio = studio;
    this.#annotate = annotate;
    this.#cleared = clearTries(studio);
    this.#host = {
      clock: systemClock,
      log: studio.log,
      broadcast: (state) => {
        studio.broadcast({ method: 'control/changed', params: state });
      },
      ended: (x) => {
        this.#endJob(x);
      },
      forget: (x) => {
        if (!this.#sessions.delete(x.id)) return;
        x.close();
        this.#endJob(x);
      },
    };
  }
  #endJob(x: ControlSession): void {
    this.#jobs.get(x.id)?.();
    this.#jobs.delete(x.id);
  }
  #add<S extends ControlSession>(x: S): S {
    this.#sessions.set(x.id, x);
    x.touch();
    return x;
  }

  states(): ControlState[] {
    return [...this.#sessions.values()].map((x) => x.state());
  }
  /** Undefined when it is over. */
  find(id: string): ControlSession | undefined {
    return this.#sessions.get(id);
  }
  /** A session somebody asks something of. Throws `not.found` when it is over. */
  use(id: string): ControlSession {
    const x = this.#sessions.get(id);
    if (!x) throw new ServiceError('not.found', 'This session is over.', 'Start another one.');
    x.touch();
    return x;
  }
  /** A session whose trajectory is kept when a person says so. */
  keeping(id: string): RecordSession | TrySession {
    const x = this.use(id);
    return x instanceof TrySession ? x : this.recording(id);
  }
  tried(id: string): TrySession {
    const x = this.use(id);
    if (!(x instanceof TrySession))
      throw new ServiceError('params.invalid', 'No policy is being tried in this session.', 'Try one.');
    return x;
  }
  recording(id: string): RecordSession {
    const x = this.use(id);
    if (!(x instanceof RecordSession))
      throw new ServiceError(
        'params.invalid',
        'The steps of a rollout are recorded as they happen.',
        'Annotate the trajectory once it has ended.',
      );
    return x;
  }
  takenOver(id: string): TakeOverSession {
    const x = this.use(id);
    if (!(x instanceof TakeOverSession))
      throw new ServiceError('params.invalid', 'A recording has no proposals.', 'Act on the desktop yourself.');
    return x;
  }

  /** A recording that has begun; it keeps the daemon alive until it is over. */
  record(p: DemonstrationRequest, signal: AbortSignal): Promise<RecordSession> {
    return this.#begin('A demonstration is being recorded.', signal, {
      make: (stop) =>
        prepareDemonstration(demonstrationHost(this.#studio), this.#host, p, {
          signal: stop,
          annotate: this.#annotate,
        }),
      begin: (x, stop) => x.begin(stop),
    });
  }
  /** A policy that acts on a desktop of its own; both keep the daemon alive until they are gone. */
  try(p: TryParams, signal: AbortSignal): Promise<TrySession> {
    const going = [...this.#sessions.values()].filter((x) => x instanceof TrySession && !x.over).length + this.#trying;
    if (going >= MOST_TRIES)
      throw new ServiceError(
        'busy',
        `${MOST_TRIES} policies are being tried: each has a desktop of its own.`,
        'Stop one of them first.',
      );
    this.#trying++;
    let begun = false;
    const counted = (): void => {
      if (!begun) this.#trying--;
      begun = true;
    };
    return this.#begin('A policy is being tried.', signal, {
      make: async (stop) => {
        await this.#cleared;
        return openTry(this.#studio, this.#host, p, { signal: stop, annotate: this.#annotate });
      },
      begin: (x) => {
        counted();
        x.begin();
        return Promise.resolve();
      },
      closed: (x) => x.closed(),
    }).finally(counted);
  }
  /** A session that keeps the daemon alive until it is over. */
  #begin<S extends ControlSession>(
    what: string,
    signal: AbortSignal,
    o: {
      readonly make: (stop: AbortSignal) => Promise<S>;
      readonly begin: (x: S, stop: AbortSignal) => Promise<void>;
      /** Called when the session is gone. */
      readonly closed?: (x: S) => Promise<void>;
    },
  ): Promise<S> {
    let done: () => void = () => undefined;
    const over = new Promise<void>((r) => {
      done = r;
    });
    return new Promise((begun, refuse) => {
      this.#studio
        .job(what, signal, async (stop) => {
          const x = this.#add(await o.make(stop));
          this.#jobs.set(x.id, done);
          try {
            await o.begin(x, stop);
          } catch (e) {
            await x.discard();
            throw e;
          }
          begun(x);
          await over;
          await o.closed?.(x);
        })
        .catch(refuse);
    });
  }

  /** The rollout on this desktop waits for its person; who has it already only changes the mode. */
  async takeOver(desktop: string, mode: 'human' | 'step', signal: AbortSignal): Promise<ControlSession> {
    const there = [...this.#sessions.values()].find((x) => x.facts.desktop === desktop && !x.over);
    if (there) {
      if (there instanceof RecordSession)
        throw new ServiceError(
          'params.invalid',
          'A person is recording a demonstration on this desktop.',
          'Choose a desktop of a run.',
        );
      await there.setMode(mode);
      return there;
    }
    if (this.#taking.has(desktop))
      throw new ServiceError(
        'params.invalid',
        'Another window is already taking over this desktop.',
        'Wait until its rollout reaches its next step.',
      );
    this.#taking.add(desktop);
    try {
      return this.#add(await this.#takeNext(desktop, mode, signal));
    } finally {
      this.#taking.delete(desktop);
    }
  }
  #takeNext(desktop: string, mode: 'human' | 'step', signal: AbortSignal): Promise<TakeOverSession> {
    const s = this.#studio;
    return takeNext({
      host: this.#host,
      signal,
      steer: () => steerable(s, desktop),
      // A pause may last: what is asked again then says so.
      between: () =>
        s.session?.desktops.desktop(desktop) !== undefined &&
        s.session.status().state === 'running' &&
        s.session.steer(desktop) === undefined,
      onChange: (l) => {
        const offs = [
          s.session?.desktops.onChange(l),
          s.onBroadcast((b) => {
            if (b.method === 'run/changed') l();
          }),
        ];
        return () => {
          for (const off of offs) off?.();
        };
      },
      open: (own, r) => {
        const { run, plan } = s.session!,
          { family, task, seed } = r.order;
        return new TakeOverSession(
          own,
          { run, desktop, screen: r.desktop.screen, family, task, seed, instruction: r.instruction },
          r,
          { mode, segment: segmentOptions(plan.config.policy.kind) },
        );
      },
    });
  }

  async close(): Promise<void> {
    await Promise.all(
      [...this.#sessions.values()].map((x) =>
        x.shutdown().catch((e: unknown) => {
          const why = e instanceof StudioError ? e.message : String(e);
          this.#studio.log('warn', `A session did not end cleanly: ${why}`);
        }),
      ),
    );
  }
}

/** The training rollout on a desktop of the active run; throws what a person must know when there is none. */
function steerable(s: Studio, desktop: string): HeldRollout {
  const active = s.session,
    r = active?.steer(desktop);
  if (!active?.desktops.desktop(desktop))
    throw new ServiceError(
      'not.found',
      `There is no desktop ${desktop} in the active run.`,
      'Choose one from the list of desktops; it may have been replaced.',
    );
  if (!r)
    throw new ServiceError(
      'params.invalid',
      'No rollout is on this desktop now.',
      'Take over while a rollout is running on it.',
    );
  if (r.kind !== 'rollout')
    throw new ServiceError(
      'params.invalid',
      'An evaluation is on this desktop: it measures the policy alone and cannot be taken over.',
      'Take over a training rollout.',
    );
  return r;
}
