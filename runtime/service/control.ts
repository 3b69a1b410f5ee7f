import { z } from 'zod';
import { StudioError, PROVIDER_CHOICES, ServiceError } from '../domain/index.js';
import { systemClock } from '../rollout/clock.js';
import * as m from '../protocol/humanMethods.js';
import type { ControlState, TrajectoryFilter } from '../protocol/types.js';
import { listTrajectories } from '../queries/rows.js';
import { actionSchema } from '../annotations/schema.js';
import { prepareDemonstration, type Annotate, type DemonstrationHost } from '../human/demonstration.js';
import { RecordSession } from '../human/record.js';
import { segmentOptions, type ControlSession, type SessionHost } from '../human/controlSession.js';
import { takeNext } from '../human/take.js';
import { TakeOverSession } from '../human/takeOver.js';
import type { DesktopRegistry } from '../rollout/desktopRegistry.js';
import type { HeldRollout } from '../run/runAccess.js';
import { fields, type Handlers } from './params.js';
import type { Studio } from './studio.js';
import type { ServiceContext } from './types.js';

/** Desktops that people hold, for whoever watches them. */
export interface ControlService {
  /** The registry of a desktop that is no run's. */
  registryOf(desktop: string): DesktopRegistry | undefined;
  close(): Promise<void>;
}

const { run, text } = fields,
  session = z.string().regex(/^[0-9a-f]{12}$/, 'must be the id of a session'),
  provider = z.enum(PROVIDER_CHOICES);
const at = z.number().finite(),
  place = z.number().finite().min(-100_000).max(100_000),
  point = { at, x: place, y: place },
  key = z.string().min(1).max(32);
const event = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('move'), ...point }),
  z.strictObject({
    type: z.literal('button'),
    ...point,
    button: z.enum(['left', 'middle', 'right']),
    down: z.boolean(),
  }),
  z.strictObject({ type: z.literal('wheel'), ...point, dx: place, dy: place }),
  z.strictObject({ type: z.literal('key'), at, key, down: z.boolean() }),
  z.strictObject({ type: z.literal('text'), at, text: z.string().max(10_000) }),
]);
/** Events of one request: more than a second of the quickest mouse. */
const MOST_EVENTS = 2000;
const schemas = {
  record: z.strictObject({
    run: run.optional(),
    base: run.optional(),
    family: text,
    seed: z.int().nonnegative().optional(),
    provider: provider.optional(),
  }),
  takeOver: z.strictObject({ desktop: text, mode: z.enum(['human', 'step']) }),
  empty: z.strictObject({}),
  session: z.strictObject({ session }),
  input: z.strictObject({ session, events: z.array(event).max(MOST_EVENTS) }),
  act: z.strictObject({ session, action: actionSchema }),
  mode: z.strictObject({ session, mode: z.enum(['human', 'policy', 'step']) }),
  accept: z.strictObject({ session, proposal: z.int().nonnegative() }),
  finish: z.strictObject({ session, failed: z.boolean().optional() }),
  keep: z.strictObject({
    session,
    pool: z.enum(['auto', 'never', 'override']),
    reason: z.string().max(2000).optional(),
    note: z.string().max(20_000).optional(),
    tags: z.array(text).max(100).optional(),
  }),
};

const demonstrationHost = (s: Studio): DemonstrationHost => ({
  writers: s.writers,
  own: s.own,
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

/**
 * control/*: a person at a desktop. Sessions live here and not in a window, so a window that is reloaded finds its own
 * again.
 */
export function controlHandlers(h: Handlers, s: Studio): ControlService {
  const sessions = new Map<string, ControlSession>();
  /** Ends the job that keeps the daemon alive for a recording. */
  const jobs = new Map<string, () => void>();
  /** Desktops that are asked for and not yet held. */
  const taking = new Set<string>();
  const host: SessionHost = {
    clock: systemClock,
    log: s.log,
    broadcast: (state) => {
      s.broadcast({ method: 'control/changed', params: state });
    },
    ended: (x) => {
      jobs.get(x.id)?.();
      jobs.delete(x.id);
    },
    forget: (x) => {
      if (sessions.delete(x.id)) {
        x.close();
        host.ended(x);
      }
    },
  };
  const of = (id: string): ControlSession => {
    const x = sessions.get(id);
    if (!x) throw new ServiceError('not.found', 'This session is over.', 'Start another one.');
    x.touch();
    return x;
  };
  const add = <S extends ControlSession>(x: S): S => {
    sessions.set(x.id, x);
    x.touch();
    return x;
  };
  const recording = (id: string): RecordSession => {
    const x = of(id);
    if (!(x instanceof RecordSession))
      throw new ServiceError(
        'params.invalid',
        'The steps of a rollout are written down as they happen.',
        'Annotate the trajectory once it has ended.',
      );
    return x;
  };
  const annotate: Annotate = async (dir, rollout, a) => {
    const c: ServiceContext = { signal: new AbortController().signal, notify: () => undefined },
      ops = [
        ...(a.tags ? [{ op: 'tags', tags: a.tags }] : []),
        ...(a.note === undefined ? [] : [{ op: 'note', text: a.note }]),
      ];
    const { revision } = (await h.map.get(m.getAnnotations.method)!({ run: dir, rollout }, c)) as { revision: number };
    if (ops.length > 0) await h.map.get(m.editAnnotations.method)!({ run: dir, rollout, base: revision, ops }, c);
  };

  h.on(m.recordDemonstration, schemas.record, async (p, c) => {
    let done: () => void = () => undefined;
    const over = new Promise<void>((r) => {
      done = r;
    });
    return new Promise<ControlState>((answer, refuse) => {
      s.job('A demonstration is being recorded.', c.signal, async (signal) => {
        const x = add(await prepareDemonstration(demonstrationHost(s), host, p, { signal, annotate }));
        jobs.set(x.id, done);
        try {
          await x.begin(signal);
        } catch (e) {
          await x.discard();
          throw e;
        }
        answer(x.state());
        await over;
      }).catch(refuse);
    });
  });
  h.on(m.takeOver, schemas.takeOver, async (p, c) => {
    const { desktop, mode } = p,
      there = [...sessions.values()].find((x) => x.facts.desktop === desktop && !x.over);
    if (there) {
      if (there instanceof RecordSession)
        throw new ServiceError(
          'params.invalid',
          'A person is recording a demonstration on this desktop.',
          'Choose a desktop of a run.',
        );
      await there.setMode(mode);
      return there.state();
    }
    if (taking.has(desktop))
      throw new ServiceError(
        'params.invalid',
        'This desktop is about to be taken over.',
        'Wait until its rollout comes to its next step.',
      );
    const steer = (): HeldRollout => {
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
          'Take over while one is under way.',
        );
      if (r.kind !== 'rollout')
        throw new ServiceError(
          'params.invalid',
          'An evaluation is on this desktop: it measures the policy alone and cannot be taken over.',
          'Take over a training rollout.',
        );
      return r;
    };
    taking.add(desktop);
    try {
      return add(
        await takeNext({
          host,
          signal: c.signal,
          steer,
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
        }),
      ).state();
    } finally {
      taking.delete(desktop);
    }
  });
  h.on(m.listControl, schemas.empty, () => ({ sessions: [...sessions.values()].map((x) => x.state()) }));
  h.on(m.attachControl, schemas.session, (p, c) => {
    const x = of(p.session);
    x.attach(c.client);
    return x.state();
  });
  h.on(m.detachControl, schemas.session, (p, c) => {
    sessions.get(p.session)?.detach(c.client);
    return {};
  });
  h.on(m.controlInput, schemas.input, async (p) => {
    await of(p.session).input(p.events);
    return {};
  });
  h.on(m.controlAct, schemas.act, async (p) => {
    const x = of(p.session);
    await x.act(p.action);
    return x.state();
  });
  h.on(m.dropStep, schemas.session, async (p) => {
    const x = recording(p.session);
    await x.dropStep();
    return x.state();
  });
  h.on(m.setControlMode, schemas.mode, async (p) => {
    const x = of(p.session);
    await x.setMode(p.mode);
    return x.state();
  });
  h.on(m.acceptProposal, schemas.accept, async (p) => {
    const x = of(p.session);
    if (!(x instanceof TakeOverSession))
      throw new ServiceError('params.invalid', 'A recording has no proposals.', 'Do it by hand.');
    await x.accept(p.proposal);
    return x.state();
  });
  h.on(m.finishControl, schemas.finish, async (p) => {
    const x = of(p.session);
    await x.finish({ failed: p.failed });
    return x.state();
  });
  h.on(m.keepDemonstration, schemas.keep, async (p) => {
    const x = recording(p.session),
      { session: _, ...how } = p;
    await x.keep(how);
    return x.state();
  });
  h.on(m.discardControl, schemas.session, async (p) => {
    const x = sessions.get(p.session);
    if (x) await x.discard();
    return {};
  });

  return {
    registryOf: (desktop) => s.own.registryOf(desktop),
    close: async () => {
      await Promise.all(
        [...sessions.values()].map((x) =>
          x.shutdown().catch((e: unknown) => {
            s.log('warn', `A session did not end cleanly: ${e instanceof StudioError ? e.message : String(e)}`);
          }),
        ),
      );
    },
  };
}
