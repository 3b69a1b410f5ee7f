import * as m from '../protocol/methods.js';
import type { ControlState } from '../protocol/types.js';
import type { Annotator } from './annotator.js';
import { schemas } from './controlSchemas.js';
import { ControlSessions } from './controlSessions.js';
import type { Handlers } from './params.js';
import type { Studio } from './studio.js';
import { policiesToTry } from './tries.js';
import { stepsOf } from './tryViews.js';

/** control/*: a person at a desktop. */
export function controlHandlers(h: Handlers, s: Studio, annotator: Annotator): ControlSessions {
  const sessions = new ControlSessions(s, (run, rollout, a) => annotator.describe(run, rollout, a));
  windowHandlers(h, sessions);
  deedHandlers(h, sessions);
  tryHandlers(h, sessions);
  return sessions;
}

/** A policy that is tried. */
function tryHandlers(h: Handlers, sessions: ControlSessions): void {
  h.on(m.tryPolicies, schemas.policies, async (p) => ({ policies: await policiesToTry(p.roots, p.files) }));
  h.on(m.tryStart, schemas.try, async (p, c) => (await sessions.try(p, c.signal)).state());
  h.on(m.trySteps, schemas.steps, (p) => stepsOf(sessions.tried(p.session), p.from));
  h.on(m.tryStop, schemas.session, async (p) => {
    const x = sessions.tried(p.session);
    await x.stop();
    return x.state();
  });
}

/** Sessions begin, and windows come and go. */
function windowHandlers(h: Handlers, sessions: ControlSessions): void {
  h.on(m.recordDemonstration, schemas.record, async (p, c) => (await sessions.record(p, c.signal)).state());
  h.on(m.takeOver, schemas.takeOver, async (p, c) => (await sessions.takeOver(p.desktop, p.mode, c.signal)).state());
  h.on(m.listControl, schemas.empty, () => ({ sessions: sessions.states() }));
  h.on(m.attachControl, schemas.session, (p, c) => {
    const x = sessions.use(p.session);
    x.attach(c.client);
    return x.state();
  });
  h.on(m.detachControl, schemas.session, (p, c) => {
    sessions.find(p.session)?.detach(c.client);
    return {};
  });
}

/** Handlers of a person's actions; each answers with the session as it then is. */
function deedHandlers(h: Handlers, sessions: ControlSessions): void {
  /** Does it and shows the session as it then is. */
  const done = async (x: { state(): ControlState }, deed: Promise<void>): Promise<ControlState> => {
    await deed;
    return x.state();
  };
  h.on(m.controlInput, schemas.input, async (p) => {
    await sessions.use(p.session).input(p.events);
    return {};
  });
  h.on(m.controlAct, schemas.act, async (p) => {
    const x = sessions.use(p.session);
    return done(x, x.act(p.action));
  });
  h.on(m.dropStep, schemas.session, async (p) => {
    const x = sessions.recording(p.session);
    return done(x, x.dropStep());
  });
  h.on(m.setControlMode, schemas.mode, async (p) => {
    const x = sessions.use(p.session);
    return done(x, x.setMode(p.mode));
  });
  h.on(m.acceptProposal, schemas.accept, async (p) => {
    const x = sessions.takenOver(p.session);
    return done(x, x.accept(p.proposal));
  });
  h.on(m.finishControl, schemas.finish, async (p) => {
    const x = sessions.use(p.session);
    return done(x, x.finish({ failed: p.failed }));
  });
  h.on(m.keepDemonstration, schemas.keep, async (p) => {
    const x = sessions.keeping(p.session),
      { session: _, ...how } = p;
    return done(x, x.keep(how));
  });
  h.on(m.discardControl, schemas.session, async (p) => {
    await sessions.find(p.session)?.discard();
    return {};
  });
}
