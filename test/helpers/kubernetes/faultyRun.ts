import { watch, type FSWatcher } from 'node:fs';
import { join } from 'node:path';
import type { RunFile } from '../../../runtime/config/index.js';
import { audit } from '../../chaos/auditor.js';
import type { Found } from '../../chaos/journal.js';
import { Tail } from '../../chaos/tail.js';
import { folderOf, replay, startWith, type Command, type Ended } from '../run/cli.js';

/** A run that trains within seconds on desktops of a cluster, and goes on until it is stopped. */
export const faultyRunFile = (kubernetes: NonNullable<RunFile['desktops']>['kubernetes']): RunFile => ({
  name: 'kubernetes-faults',
  seed: 3,
  tasks: { families: ['press-button', 'term-touch'] },
  // Without spares a pod that is gone is made again: that is what quota and image have a say in.
  desktops: { provider: 'kubernetes', count: 3, kubernetes: { spares: 0, startSeconds: 60, ...kubernetes } },
  policy: { replicas: 1 },
  rollout: { maxSteps: 4 },
  curation: { dynamicRollouts: { max: 4 } },
  trainer: { batchGroups: 1, epochs: 1, replay: 8 },
  warmStart: { demonstrations: 2, steps: 10 },
  evaluation: { episodes: 0 },
  budget: { minutes: 600 },
});

/** What a fault cost the run. */
export interface FaultCost {
  /** From its beginning to its end, in ms; a fault that has no end takes none. */
  readonly lastedMs: number;
  /** From its end to the next rollout that finished with a verdict. */
  readonly nextRolloutMs: number;
  /** The same to the next rollout that began on a desktop that was not there before; where a pod was lost. */
  readonly newDesktopMs?: number;
  /** Rollouts that finished with a verdict while it lasted. */
  readonly meanwhile: number;
  /** Rollouts that ended in an error until then, by its kind. */
  readonly errors: Readonly<Record<string, number>>;
}
/** What the run comes to when it has ended. */
export interface Judgement {
  readonly generated: number;
  readonly trained: number;
  readonly inFlight: number;
  readonly retired: Readonly<Record<string, number>>;
  readonly updates: number;
  /** Rollouts that ended in an error, and those of them that have a reward or were trained: none may. */
  readonly errors: number;
  readonly rewardedErrors: number;
  /** Each in a sentence; empty when nothing was lost, repeated or skipped, and every rollout is accounted for. */
  readonly problems: readonly string[];
}

/** A verdict that was reached on a desktop may be recorded so long after the desktop went. */
const VERDICT_MS = 1000;

/** A training run in a process of its own, and what its journal says while faults are made. */
export class FaultyRun {
  readonly dir: string;
  readonly #command: Command;
  readonly #tail: Tail;
  readonly #watcher: FSWatcher;
  /** Desktop of each rollout that is under way. */
  readonly #running = new Map<string, string>();
  readonly #seen = new Set<string>();
  readonly #kinds: string[] = [];
  /** When desktops went, in ms since the epoch; and verdicts that cannot be. */
  readonly #lost = new Map<string, number>();
  readonly #late: string[] = [];
  #ended: Ended | undefined;
  #wake: () => void = () => undefined;

  readonly #patienceMs: number;

  private constructor(dir: string, command: Command, patienceMs: number) {
    this.dir = dir;
    this.#patienceMs = patienceMs;
    this.#command = command;
    this.#tail = new Tail(dir, (e) => this.#take(e));
    this.#watcher = watch(join(dir, 'journal'), () => this.#wake());
    void command.ended.then((ended) => {
      this.#ended = ended;
      this.#wake();
    });
  }

  /**
   * Resolves when the run trains: rollouts have finished, and the policy has learned from some. `patienceMs`: how long it
   * may take to go on after a fault.
   */
  static async start(o: {
    readonly runFile: string;
    readonly runs: string;
    readonly env: Readonly<Record<string, string>>;
    readonly patienceMs: number;
  }): Promise<FaultyRun> {
    const command = startWith(o.env, 'train', o.runFile, '--runs', o.runs, '--json'),
      dir = await folderOf(command);
    await command.hear((l) => l['type'] === 'status'); // by then there is a journal
    const run = new FaultyRun(dir, command, o.patienceMs);
    await run.until('it trains', () => run.#tail.versions > 0);
    return run;
  }

  get finished(): number {
    return this.#tail.recorded.size;
  }
  /** Desktops on which a rollout is under way. */
  get desktops(): readonly string[] {
    return [...new Set(this.#running.values())];
  }
  /** The desktop is gone: whatever is under way on it may have no verdict any more. */
  lost(desktop: string): void {
    this.#lost.set(desktop, Date.now());
  }

  #take(e: Found['event']): void {
    if (e.type === 'rollout.started') {
      const desktop = String(e['desktop']);
      this.#running.set(String(e['rollout']), desktop);
      this.#seen.add(desktop);
    }
    if (e.type === 'rollout.retired') this.#running.delete(String(e['rollout']));
    if (e.type !== 'trajectory.recorded') return;
    const { id, outcome } = e['head'] as { id: string; outcome: { error?: { kind: string } } };
    const desktop = this.#running.get(id);
    this.#running.delete(id);
    if (outcome.error) this.#kinds.push(outcome.error.kind);
    else if (desktop !== undefined && e.at > (this.#lost.get(desktop) ?? Infinity) + VERDICT_MS)
      this.#late.push(`${id} has a verdict, ${e.at - this.#lost.get(desktop)!} ms after its desktop was gone`);
  }

  /** Resolves when the journal says so. Rejects when the run ends first, or after the patience. */
  async until(what: string, so: () => boolean): Promise<void> {
    const late = AbortSignal.timeout(this.#patienceMs),
      wake = (): void => this.#wake();
    late.addEventListener('abort', wake, { once: true });
    for (;;) {
      const ended = this.#ended,
        grown = new Promise<void>((go) => {
          this.#wake = go;
        });
      this.#tail.poll();
      if (so()) break;
      if (ended) throw new Error(`the run ended (code ${ended.code}) before this: ${what}\n${ended.stderr}`);
      if (late.aborted) throw new Error(`not within ${this.#patienceMs / 1000} s: ${what}`);
      await grown;
    }
    late.removeEventListener('abort', wake);
  }

  /** Makes a fault; `make` resolves when it has ended. Resolves when the run has gone on. */
  async fault(what: string, make: () => Promise<void>, o: { readonly podLost?: boolean } = {}): Promise<FaultCost> {
    this.#tail.poll();
    const known = new Set(this.#seen),
      errors = this.#kinds.length,
      finished = this.finished,
      began = performance.now();
    await make();
    this.#tail.poll();
    const ended = performance.now(),
      meanwhile = this.finished - finished,
      since = (): number => Math.round(performance.now() - ended);
    const next = this.finished;
    await this.until(`a rollout finishes after: ${what}`, () => this.finished > next);
    const nextRolloutMs = since();
    const isNew = (): boolean => [...this.#seen].some((d) => !known.has(d));
    if (o.podLost) await this.until(`a rollout begins on a new desktop after: ${what}`, isNew);
    return {
      lastedMs: Math.round(ended - began),
      nextRolloutMs,
      ...(o.podLost ? { newDesktopMs: since() } : {}),
      meanwhile,
      errors: counted(this.#kinds.slice(errors)),
    };
  }

  /** Stops the run as Ctrl-C does, and judges what its journal says from its first record on. */
  async stop(): Promise<Judgement> {
    this.#command.signal('SIGINT');
    const { code, stderr } = await this.#command.ended;
    this.#watcher.close();
    this.#tail.poll();
    const { counts, damage, of } = await replay(this.dir),
      heads = of('trajectory.recorded')
        .map((e) => e.head)
        .filter((h) => h.provenance.kind === 'rollout'),
      failed = heads.filter((h) => h.outcome.kind === 'error'),
      trained = new Set<string>(of('batch.trained').flatMap((e) => e.rollouts)),
      retired = Object.values(counts.retired).reduce((a, b) => a + b, 0),
      sound = audit(
        this.dir,
        { seen: this.#tail.seen, damaged: new Set(), checkpoints: 0, notes: new Set() },
        true,
      ).problems;
    return {
      generated: counts.generated,
      trained: counts.trained,
      inFlight: counts.inFlight,
      retired: counts.retired,
      updates: of('batch.trained').length,
      errors: failed.length,
      rewardedErrors: failed.filter((h) => 'reward' in h.outcome || trained.has(h.id)).length,
      problems: [
        ...(code === 130 ? [] : [`the run ended with code ${code}: ${stderr.slice(-500)}`]),
        ...(damage === 0 ? [] : [`${damage} damaged stretches in the journal`]),
        ...(counts.generated === counts.trained + counts.inFlight + retired
          ? []
          : [
              `${counts.generated} rollouts generated, ${counts.trained} + ${counts.inFlight} + ${retired} accounted for`,
            ]),
        ...this.#late,
        ...this.#kinds.filter((k) => !k.startsWith('desktop.')).map((k) => `an error that no fault explains: ${k}`),
        ...sound,
      ],
    };
  }
}

function counted(kinds: readonly string[]): Record<string, number> {
  const n: Record<string, number> = {};
  for (const k of kinds) n[k] = (n[k] ?? 0) + 1;
  return n;
}
