import { existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { SplitCount } from '../lib/evaluated.js';
import { Interrupted, Lab, StatusLine, interruptSignal, writeAtomic } from '../lib/experiments.js';
import { finish, machine } from '../lib/report.js';
import type { SessionArgs, Written } from '../lib/session.js';
import type { LeftOut } from './mechanisms.js';
import { curationPlan, minutesOf, planId, startOf, type CurationPlan, type Planned } from './plan.js';
import {
  appendRecord,
  checkStart,
  claimWork,
  codeId,
  mixture,
  readRecord,
  type Identity,
  type Recorded,
} from './record.js';
import { curationReport } from './report.js';

/** The bundle that every run is made by. */
const RUNTIME = 'dist/runtime.js';
const builtAt = (): number => (existsSync(RUNTIME) ? statSync(RUNTIME).mtimeMs : 0);

interface Place {
  readonly out: string;
  readonly runs: string;
  readonly work: string;
}
export interface Session extends Place {
  readonly plan: CurationPlan;
  readonly leftOut: readonly LeftOut[];
  /** Of what joins the record. */
  readonly identity: Identity;
  /** Go on with a record of something else. */
  readonly mix: boolean;
  readonly lab: Pick<Lab, 'run' | 'finished' | 'evaluate' | 'commit'>;
  readonly log: Pick<StatusLine, 'status' | 'note'>;
  readonly signal: AbortSignal;
  readonly recorded: Recorded[];
  readonly failed: string[];
}

/**
 * Makes the runs that are not recorded yet, in the order of the plan, each a line of runs.jsonl as soon as it is measured,
 * and writes the report after each. Throws before anything runs where the record is of another plan or of other sources,
 * unless `--mix` says that this is known. Ctrl-C ends it cleanly; the same command goes on.
 */
export async function curationSession(
  plan: CurationPlan,
  leftOut: readonly LeftOut[],
  args: SessionArgs,
): Promise<void> {
  const log = new StatusLine(),
    signal = interruptSignal(),
    name = plan.quick ? 'curation-quick' : 'curation',
    out = resolve(args.option('--out') ?? join('dist/bench', name)),
    work = resolve(args.option('--work') ?? join('.cache/bench', name)),
    provider = (args.option('--provider') ?? 'local') as 'auto' | 'docker' | 'local',
    runs = join(out, 'runs.jsonl');
  mkdirSync(out, { recursive: true });
  if (plan.quick) forget(plan, { out, work, runs });
  const lab = new Lab({ bench: 'curation', dir: work, runtime: resolve(RUNTIME), provider, signal, log }),
    identity = { plan: planId(plan), code: codeId() },
    place = { out, work, runs },
    s: Session = {
      ...place,
      plan,
      leftOut,
      identity,
      lab,
      log,
      signal,
      mix: args.flag('--mix'),
      recorded: readRecord(runs),
      failed: [],
    };
  for (const { mechanism, why } of leftOut)
    log.note(
      `${mechanism.label} (${mechanism.name}) is left out, since this version's run file does not have it: ${why}`,
    );
  if (!args.flag('--report')) await makeRuns(s);
  const w = write(s);
  finish('curation', w.rows, w.bars, args.json);
  console.log(`${out}; ${s.recorded.length} of ${curationPlan(plan).length} runs`);
  if (signal.aborted) process.exitCode = 130;
  else if (s.failed.length > 0) process.exitCode = 1;
}

/** A short look is made anew each time. */
function forget(plan: CurationPlan, { runs, work }: Place): void {
  for (const f of [runs, join(work, 'of.json')]) rmSync(f, { force: true });
  for (const { experiment } of curationPlan(plan))
    rmSync(join(work, experiment.name), { recursive: true, force: true });
}

/** Makes what is not recorded yet. */
export async function makeRuns(s: Session): Promise<void> {
  refuseMixture(s);
  const built = builtAt(),
    planned = curationPlan(s.plan),
    left = (): readonly Planned[] => planned.filter((x) => !s.recorded.some((r) => r.name === x.experiment.name));
  for (const x of left()) {
    if (s.signal.aborted) return;
    if (builtAt() !== built) {
      s.failed.push('The runtime was built anew while runs were made: start again, then its sources are looked at.');
      return;
    }
    const place = `[${planned.length - left().length + 1}/${planned.length}, ${hoursLeft(s, left())}]`;
    try {
      const run = { ...s.identity, ...(await make(s, x, place)) };
      appendRecord(s.runs, run);
      s.recorded.push(run);
      write(s);
    } catch (error) {
      if (error instanceof Interrupted) return;
      // One more try of the same run is a matter of starting the command again.
      s.failed.push(`${x.experiment.name}: ${(error as Error).message}`);
      s.log.note(`FAILED ${s.failed.at(-1)!}`);
    }
  }
}

function refuseMixture({ recorded, runs, work, identity, mix }: Session): void {
  if (mix) return;
  for (const [where, why] of [
    [runs, mixture(recorded, identity)],
    [work, claimWork(work, identity)],
  ] as const)
    if (why !== undefined)
      throw new Error(
        `${where}: ${why} Figures of both do not belong into one table: give another --out and --work, or --mix to put them together all the same.`,
      );
}

/** Trains, and measures the policy that comes out; what was trained already is only measured. */
async function make(
  { lab, log, recorded, plan, work }: Session,
  x: Planned,
  place: string,
): Promise<Omit<Recorded, 'plan' | 'code'>> {
  const { experiment: e, measures, levels, part } = x;
  if (e.from !== undefined) {
    const start = curationPlan({ ...plan, seeds: [e.seed] }).find((p) => p.experiment.name === startOf(e.seed))!;
    checkStart(
      recorded.find((r) => r.name === e.from),
      lab.finished(start.experiment),
      work,
    );
  }
  const { splits: _, ...trained } = await lab.run(e, place),
    began = Date.now(),
    measured: Record<string, SplitCount & { errors: number }> = {};
  for (const m of measures) {
    log.status(`${place} ${e.name} · evaluating (${m.name})`);
    const { episodes, successes, errors, perFamily } = await lab.evaluate(e.name, m.args);
    measured[m.name] = { episodes, successes, errors, perFamily };
  }
  const rates = Object.entries(measured).map(
    ([name, c]) => `${name} ${((100 * c.successes) / c.episodes).toFixed(0)} %`,
  );
  if (rates.length > 0) log.note(`      ${rates.join(', ')}`);
  return {
    ...trained,
    ...(part ? { part } : {}),
    ...(levels ? { levels } : {}),
    measured,
    measuredSeconds: Math.round((Date.now() - began) / 1000),
  };
}

/** By what was expected of the runs that are left, and how runs so far compared with it. */
function hoursLeft({ plan, recorded }: Session, left: readonly Planned[]): string {
  const expected = new Map(curationPlan(plan).map((x) => [x.experiment.name, minutesOf(x)])),
    known = recorded.filter((r) => expected.has(r.name)),
    took = known.reduce((n, r) => n + (r.wallSeconds + r.measuredSeconds) / 60, 0),
    thought = known.reduce((n, r) => n + expected.get(r.name)!, 0),
    rest = left.reduce((n, x) => n + minutesOf(x), 0) * (thought > 0 ? took / thought : 1);
  return rest < 90 ? `${rest.toFixed(0)} min left` : `${(rest / 60).toFixed(1)} h left`;
}

function write({ plan, leftOut, recorded, failed, out, lab }: Session): Written {
  const w = curationReport(recorded, { plan, leftOut, failed }),
    given = process.argv.slice(2),
    command = `npm run bench:curation${given.length > 0 ? ` -- ${given.join(' ')}` : ''}`,
    commit = recorded.length > 0 ? [...new Set(recorded.map((r) => r.commit))].join(' ') : lab.commit,
    made = { bench: 'curation', commit, machine: recorded[0]?.machine ?? machine(), command };
  writeAtomic(join(out, 'curation.md'), `${w.markdown}\nCommand: \`${command}\`\n`);
  writeAtomic(join(out, 'curation.svg'), w.svg);
  writeAtomic(join(out, 'curation.json'), JSON.stringify({ ...made, rows: w.rows, bars: w.bars }, null, 1) + '\n');
  return w;
}
