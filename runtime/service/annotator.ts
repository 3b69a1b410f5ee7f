import { resolve } from 'node:path';
import { z } from 'zod';
import { ServiceError } from '../domain/index.js';
import { annotatedOf, partOf } from '../annotations/facts.js';
import { after, before, type AnnotationRecord, type Line } from '../annotations/line.js';
import { viewOf } from '../annotations/revise.js';
import { limits, opSchema } from '../annotations/schema.js';
import { validOps } from '../annotations/validate.js';
import * as m from '../protocol/methods.js';
import type { AnnotationOp, AnnotationView, RunPath, TrajectoryView } from '../protocol/types.js';
import { trajectoryView } from '../queries/trajectory.js';
import { interpreterOf } from './interpreter.js';
import { parse } from './params.js';
import type { OpenRun, Studio } from './studio.js';

/** Edits of one request. */
export const opsSchema = z.array(opSchema).max(limits.ops);

/** A recorded trajectory, and which part of it was asked for. */
export interface Recorded {
  readonly view: TrajectoryView;
  readonly root: string;
  readonly place: number;
}
/** Finds a trajectory by its name, or, where there is none, by the name of a part: `<rollout>/b`. */
export async function recorded(r: OpenRun, rollout: string): Promise<Recorded> {
  const part = partOf(rollout),
    own = part && (await r.reader.index.query('SELECT 1 FROM rollouts WHERE id = ?', [rollout])).length === 0;
  const root = own ? part.root : rollout,
    view = await trajectoryView(r.reader, root, { alive: r.alive, interpreter: interpreterOf(r.facts) }).catch(
      (e: unknown) => {
        throw own && e instanceof ServiceError && e.kind === 'not.found' ? noPart(rollout) : e;
      },
    );
  return { view, root, place: own ? part.place : 0 };
}
export const noPart = (rollout: string): ServiceError =>
  new ServiceError(
    'not.found',
    `There is no trajectory ${rollout} in this run.`,
    'List the trajectories again; the split that made this part may have been undone.',
  );

const runningLock = { message: 'It is still running.', remedy: 'Annotate it when it has ended.' };
const nameOf = (f: Recorded): string => (f.place === 0 ? f.root : `${f.root}/${String.fromCharCode(97 + f.place)}`);

/** Revisions of finished trajectories: shown, edited, undone and redone; every window hears of each. */
export class Annotator {
  readonly #s: Studio;
  constructor(s: Studio) {
    this.#s = s;
  }

  find(dir: RunPath, rollout: string): Promise<Recorded> {
    return this.#s.read(dir, (r) => recorded(r, rollout));
  }
  async view(run: RunPath, rollout: string): Promise<AnnotationView> {
    const dir = resolve(run),
      f = await this.find(dir, rollout);
    return this.show(dir, f, await this.#s.annotations.line(dir, f.root));
  }
  async show(dir: RunPath, f: Recorded, line: Line): Promise<AnnotationView> {
    const view = viewOf(f.view, dir, line, f.place),
      locked = f.view.live ? runningLock : await this.#s.annotations.locked(dir);
    if (!view) throw noPart(nameOf(f));
    return { ...view, locked };
  }

  /** Adds one revision. `base` is the revision the window showed. */
  edit(run: RunPath, rollout: string, base: number, edits: readonly AnnotationOp[]): Promise<AnnotationView> {
    return this.#change(run, rollout, (l, f) => {
      if (base !== l.head)
        throw new ServiceError(
          'busy',
          `This edit is of revision ${base}, but the current one is revision ${l.head}: another window edited it.`,
          'Open the newer revision and edit that.',
        );
      const ops = validOps(f.view.steps, f.root, l, f.place, edits),
        part = annotatedOf(f.root, l)[f.place]!.from;
      return { type: 'edit', rollout: f.root, part, revision: l.last + 1, base: l.head, at: Date.now(), ops };
    });
  }
  undo(run: RunPath, rollout: string): Promise<AnnotationView> {
    return this.#moveTo(run, rollout, before);
  }
  redo(run: RunPath, rollout: string): Promise<AnnotationView> {
    return this.#moveTo(run, rollout, after);
  }
  #moveTo(run: RunPath, rollout: string, to: (l: Line) => number | undefined): Promise<AnnotationView> {
    return this.#change(run, rollout, (l, f) => {
      const revision = to(l);
      return revision === undefined ? undefined : { type: 'head', rollout: f.root, revision, at: Date.now() };
    });
  }
  /** Note and tags of a trajectory that was just recorded. */
  async describe(
    run: RunPath,
    rollout: string,
    a: { readonly note?: string | undefined; readonly tags?: readonly string[] | undefined },
  ): Promise<void> {
    const ops = parse(m.editAnnotations.method, opsSchema, [
      ...(a.tags ? [{ op: 'tags', tags: a.tags }] : []),
      ...(a.note === undefined ? [] : [{ op: 'note', text: a.note }]),
    ] as z.infer<typeof opsSchema>);
    const { revision } = await this.view(run, rollout);
    if (ops.length > 0) await this.edit(run, rollout, revision, ops);
  }

  /** Adds a record to the line, or none when `build` answers undefined; told to every window. */
  async #change(
    run: RunPath,
    rollout: string,
    build: (l: Line, f: Recorded) => AnnotationRecord | undefined,
  ): Promise<AnnotationView> {
    const dir = resolve(run),
      f = await this.find(dir, rollout),
      was = await this.#s.annotations.line(dir, f.root);
    if (f.view.live) throw new ServiceError('busy', runningLock.message, runningLock.remedy);
    const line = await this.#s.annotations.write(dir, f.root, (l) => {
      if (!annotatedOf(f.root, l)[f.place]) throw noPart(rollout);
      return build(l, f);
    });
    if (line !== was) this.tell(dir, f.root, was, line);
    return this.show(dir, viewOf(f.view, dir, line, f.place) ? f : { ...f, place: 0 }, line);
  }

  /** Every window that may show the trajectory or a part of it, before or after. */
  tell(dir: RunPath, root: string, was: Line, now: Line): void {
    const names = new Set([...annotatedOf(root, was), ...annotatedOf(root, now)].map((a) => a.rollout));
    for (const rollout of names)
      this.#s.broadcast({ method: 'annotation/changed', params: { run: dir, rollout, revision: now.head } });
  }
}
