import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as methods from '../../../runtime/protocol/methods.js';
import { readRecords } from '../journal.js';
import { restart, type Faults, type Patient } from '../patient.js';

/** Of an import that a kill cut off. */
const IMPORTED = 12;

/** A trajectory of the run that has ended. */
function ended(c: Patient, n: number): string[] {
  return [...c.tail.recorded].slice(-n);
}

/** The same import, until it is whole; what it made must be there once each. */
async function importAgain(c: Patient, from: string, name: string): Promise<void> {
  const request = { path: from, base: c.base, name, pool: false } as const;
  const { imported, already } = await c.client.request(methods.importTrajectories, request);
  const ids = readRecords(join(c.base, name, 'journal')).records.flatMap(({ event: e }) =>
    e.type === 'trajectory.recorded' ? [(e['head'] as { id: string }).id] : [],
  );
  if (new Set(ids).size !== ids.length) c.problems.push(`the import ${name} has a trajectory twice`);
  if (ids.length !== imported + already)
    c.problems.push(`the import ${name} says it has ${imported} + ${already} trajectories and has ${ids.length}`);
}

export const peopleFaults: Faults = {
  'cut-connection': {
    phase: 'live',
    make: async (c) => {
      // It may be back before anybody looks.
      let noticed = false;
      const off = c.client.onState(() => {
        noticed ||= c.client.state !== 'ready';
      });
      if (!c.cut()) return false;
      c.mark();
      await c.until(() => noticed, 20_000, 'a window noticed that it was cut off').finally(off);
      // The window comes back by itself.
      await c.until(() => c.client.state === 'ready', 20_000, 'a window that was cut off was back');
      return true;
    },
  },
  'at-import': {
    phase: 'live',
    make: async (c) => {
      const rollouts = ended(c, IMPORTED),
        name = `imported-${c.tail.count('rollout.step')}`,
        from = join(c.base, `${name}.exported`);
      if (rollouts.length < IMPORTED) return false;
      await c.client.request(methods.exportTrajectories, { run: c.folder, to: from, format: 'traj', rollouts });
      const armed = c.at('import'),
        asked = c.client
          .request(methods.importTrajectories, { path: from, base: c.base, name, pool: false })
          .catch(() => undefined);
      if (!(await armed)) {
        await asked;
        return false;
      }
      await restart(c);
      if (!existsSync(join(c.base, name, 'run.json'))) c.problems.push(`the import ${name} was not begun`);
      await importAgain(c, from, name);
      return true;
    },
  },
  'at-annotation': {
    phase: 'live',
    make: async (c) => {
      const [rollout] = ended(c, 1),
        of = { run: c.folder, rollout: rollout! };
      if (rollout === undefined) return false;
      const note = async (text: string): Promise<void> => {
        const { revision } = await c.client.request(methods.getAnnotations, of);
        await c.client.request(methods.editAnnotations, { ...of, base: revision, ops: [{ op: 'note', text }] });
        c.notes.add(text);
      };
      await note(`first of ${rollout}`);
      const armed = c.at('annotation'),
        asked = note(`second of ${rollout}`).catch(() => undefined);
      if (!(await armed)) {
        await asked;
        return false;
      }
      await restart(c);
      await note(`third of ${rollout}`);
      return true;
    },
  },
};
