import { readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readRecords, segmentsOf, type Found } from '../journal.js';
import { DETECTED_MS, restart, signal, soon, type Fault, type Faults, type Patient } from '../patient.js';

/** What is damaged while nobody writes; the records hit are known to the audit. False: there is nothing to damage. */
const damage = (how: (c: Patient) => boolean | void): Fault => ({
  phase: 'damage',
  make: async (c) => {
    c.tail.poll();
    await c.killDaemon();
    c.tail.poll();
    const made = how(c) ?? true;
    await restart(c);
    return made;
  },
});
function flip(file: string, byte: number, bit = 0): void {
  const b = readFileSync(file);
  b[byte]! ^= 1 << bit;
  writeFileSync(file, b);
}
const some = <T>(c: Patient, of: readonly T[]): T | undefined => of[Math.floor(c.random() * of.length)];
function flipRecord(c: Patient, of: readonly Found[]): boolean {
  const hit = some(c, of);
  if (!hit) return false;
  c.damaged.add(hit.seq);
  flip(hit.file, hit.from + 4 + Math.floor(c.random() * (hit.to - hit.from - 4)), Math.floor(c.random() * 8));
  return true;
}
const ofDemonstration = ({ event: e }: Found): boolean =>
  (e.type === 'rollout.step' && String(e['rollout']).startsWith('demo/')) ||
  (e.type === 'trajectory.recorded' && (e['head'] as { id: string }).id.startsWith('demo/'));

/** The newest checkpoint, by its name; undefined where there is only one that could take its place. */
function newestCheckpoint(c: Patient): string | undefined {
  const dir = join(c.folder, 'checkpoints'),
    there = readdirSync(dir)
      .filter((n) => /^v\d+$/.test(n))
      .sort();
  return there.length < 2 ? undefined : join(dir, there.at(-1)!);
}

/** Weights are lost on disk and in the trainer at once, while the daemon lives: it goes on from older ones. */
const loseWeights: Fault = {
  phase: 'live',
  make: async (c) => {
    const pid = await soon(() => c.children('__trainer')[0]);
    // Stopped, it makes no other one meanwhile.
    if (pid === undefined || !signal(pid, 'SIGSTOP')) return false;
    const dir = newestCheckpoint(c);
    if (dir === undefined) {
      signal(pid, 'SIGCONT');
      return false;
    }
    const file = join(dir, 'weights.f32');
    flip(file, Math.floor(c.random() * statSync(file).size), Math.floor(c.random() * 8));
    c.checkpoints++;
    signal(pid, 'SIGKILL');
    c.mark();
    const { versions } = c.tail;
    await c.until(() => c.tail.versions > versions, DETECTED_MS, 'a run that lost its weights had others');
    return true;
  },
};

export const damageFaults: Faults = {
  'lose-weights': loseWeights,
  'cut-journal-tail': damage((c) => {
    const last = readRecords(join(c.folder, 'journal')).records.at(-1)!;
    c.damaged.add(last.seq);
    truncateSync(last.file, last.to - 1 - Math.floor(c.random() * (last.to - last.from - 2)));
  }),
  'flip-journal-tail': damage((c) => {
    const last = readRecords(join(c.folder, 'journal')).records.at(-1)!;
    c.damaged.add(last.seq);
    flip(last.file, last.from + 24 + Math.floor(c.random() * 8));
  }),
  'flip-journal-record': damage((c) => flipRecord(c, readRecords(join(c.folder, 'journal')).records.slice(0, -1))),
  'flip-demonstration': damage((c) =>
    flipRecord(c, readRecords(join(c.folder, 'journal')).records.filter(ofDemonstration)),
  ),
  'flip-journal-header': damage((c) => {
    flip(some(c, segmentsOf(join(c.folder, 'journal')))!, Math.floor(c.random() * 16), Math.floor(c.random() * 8));
  }),
  'flip-index': damage((c) => {
    const file = join(c.folder, 'index.sqlite');
    try {
      flip(file, Math.floor(c.random() * statSync(file).size));
    } catch {
      /* there is none yet, which is as bad */
    }
  }),
  'flip-frame': damage((c) => {
    const dir = join(c.folder, 'frames'),
      packs = readdirSync(dir).filter((n) => n.endsWith('.pack') && statSync(join(dir, n)).size > 0),
      pack = some(c, packs);
    if (pack === undefined) return false;
    flip(join(dir, pack), Math.floor(c.random() * statSync(join(dir, pack)).size));
    return true;
  }),
  'flip-checkpoint': damage((c) => {
    const dir = newestCheckpoint(c);
    if (dir === undefined) return false;
    const file = join(dir, some(c, readdirSync(dir))!);
    flip(file, Math.floor(c.random() * statSync(file).size), Math.floor(c.random() * 8));
    c.checkpoints++;
    return true;
  }),
  'drop-checkpoint': damage((c) => {
    const dir = newestCheckpoint(c);
    if (dir === undefined) return false;
    rmSync(dir, { recursive: true });
    c.checkpoints++;
    return true;
  }),
};
