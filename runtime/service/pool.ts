import { resolve } from 'node:path';
import { z } from 'zod';
import * as m from '../protocol/methods.js';
import type { PoolView, RunPath } from '../protocol/types.js';
import { parseRunFile } from '../config/index.js';
import { poolView } from '../queries/pool.js';
import type { RunWriter } from '../human/runWriter.js';
import { coalesce } from './desktops.js';
import { fields, type Handlers } from './params.js';
import type { Studio } from './studio.js';
import { ServiceError } from '../domain/index.js';

const { run, text } = fields,
  reason = z.string().trim().min(1).max(2000),
  rollouts = z.array(text).min(1).max(10_000);
const schemas = {
  list: z.strictObject({ run }),
  set: z.strictObject({ run, rollouts, enabled: z.boolean() }),
  add: z.strictObject({ run, rollout: text, override: reason.optional() }),
  remove: z.strictObject({ run, rollouts, reason }),
};
/** Shortest time between two `pool/changed` of an active run. */
const CHANGED_MS = 1000;

/** pool/*: what the experience pool of a run holds, and changes to it. */
export function poolHandlers(h: Handlers, s: Studio): void {
  const view = (dir: RunPath): Promise<PoolView> =>
    s.read(dir, (r) =>
      poolView(r.reader, {
        facts: r.facts,
        config: (r.facts.config ?? parseRunFile({})).curation.pool,
        version: r.session?.status().version,
        active: r.session !== undefined,
      }),
    );
  const change = async (dir: RunPath, f: (w: RunWriter) => Promise<void>): Promise<PoolView> => {
    await s.mustExist(dir); // what is no run is `not.found`, not a folder that cannot be locked
    const w = await s.writers.open(dir);
    try {
      await f(w);
      return await view(dir);
    } finally {
      await w.close();
    }
  };
  h.on(m.listPool, schemas.list, (p) => view(p.run));
  h.on(m.setPool, schemas.set, (p) => change(p.run, (w) => w.setEnabled(p.rollouts, p.enabled)));
  h.on(m.removeFromPool, schemas.remove, (p) => change(p.run, (w) => w.unpool(p.rollouts, p.reason)));
  h.on(m.addToPool, schemas.add, (p) =>
    change(p.run, async (w) => {
      const answer = await w.pool(p.rollout, p.override === undefined ? 'auto' : { override: p.override });
      if (answer.twin !== undefined)
        throw new ServiceError(
          'params.invalid',
          `${p.rollout} cannot join the pool: ${answer.why ?? ''} (${answer.twin}).`,
          `Turn ${answer.twin} on if it is off, or remove it first.`,
        );
      if (!answer.pooled)
        throw new ServiceError(
          'params.invalid',
          `${p.rollout} cannot join the pool: ${answer.why ?? ''}.`,
          p.override === undefined
            ? 'Give a reason to add it without a verified success, or choose another trajectory.'
            : 'Choose another trajectory.',
        );
    }),
  );
  const tell = coalesce<RunPath>(CHANGED_MS, (dir) => {
    s.broadcast({ method: 'pool/changed', params: { run: resolve(dir) } });
  });
  s.onSession((session) => {
    session?.data.onPool(() => {
      tell(session.run, session.run);
    });
  });
}
