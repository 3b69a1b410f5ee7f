import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { FamilyId, TaskId } from '../domain/index.js';
import { StudioError, id } from '../domain/index.js';
import { foreignJson } from '../foreign/json.js';
import { ForeignFileError, readForeign } from '../files/foreignFile.js';
import type { Evaluator, SetupStep, Task } from './types.js';

/**
 * OSWorld's task JSON (runtime/tasks/README.md#task-files): which fields are read, and what makes a file invalid.
 * Unknown types are left for the check.
 */
const noNul = (s: string): boolean => !s.includes('\0');
const path = z.string().min(1, 'must not be empty').refine(noNul, 'must not contain a NUL character');
const httpUrl = z.string().refine((s) => {
  try {
    return ['http:', 'https:'].includes(new URL(s).protocol);
  } catch {
    return false;
  }
}, 'must be an http or https URL');
const words = z.array(z.string().refine(noNul, 'must not contain a NUL character')).min(1, 'must not be empty');
const command = z.union(
  [z.string().min(1, 'must not be empty').refine(noNul, 'must not contain a NUL character'), words],
  'must be a command line or a list of words',
);
/** Files written `"true"` exist; Python takes any non-empty string as true. */
const flag = z.union([z.boolean(), z.string()]).optional();
const fileName = z
  .string()
  .min(1)
  .refine((s) => !s.includes('/') && s !== '..' && noNul(s), 'must be a plain file name');
const pageUrl = z.string().min(1).refine(noNul, 'must not contain a NUL character');
const window = z.object({ window_name: path, strict: flag, by_class: flag });
const execute = z.object({
  command,
  shell: flag,
  stdout: z.union([fileName, z.literal('')]).optional(),
  stderr: z.union([fileName, z.literal('')]).optional(),
  until: z
    .object({ returncode: z.number().int().optional(), stdout: z.string().optional(), stderr: z.string().optional() })
    .nullish(),
  /** Most runs of an `until` command (ours; OSWorld knows only its time limit). */
  attempts: z.number().int().min(1).optional(),
});

/**
 * Parameters of the setup steps we run; checked when a file is read so that a wrong file is found before any desktop is
 * touched.
 */
export const setupParameters = {
  download: z.object({ files: z.array(z.object({ url: httpUrl, path })) }),
  launch: z.object({ command, shell: flag }),
  open: z.object({ path }),
  execute,
  command: execute,
  sleep: z.object({ seconds: z.number().min(0) }),
  activate_window: window,
  close_window: window,
  chrome_open_tabs: z.object({ urls_to_open: z.array(pageUrl) }),
  chrome_close_tabs: z.object({ urls_to_close: z.array(pageUrl) }),
  update_browse_history: z.object({
    history: z.array(z.object({ url: pageUrl, title: z.string(), visit_time_from_now_in_seconds: z.number().min(0) })),
  }),
  change_wallpaper: z.object({ path }),
  execute_with_verification: z.object({
    command,
    shell: flag,
    verification: z
      .object({ window_exists: z.string().optional(), command_success: z.string().optional() })
      .default({}),
    max_wait_time: z.number().min(0).default(10),
    check_interval: z.number().min(0).default(1),
  }),
} as const;
export type SetupType = keyof typeof setupParameters;
export type SetupParameters<T extends SetupType> = z.infer<(typeof setupParameters)[T]>;
export const isSetupType = (t: string): t is SetupType => Object.hasOwn(setupParameters, t);

const step = z
  .object({ type: z.string().min(1), parameters: z.record(z.string(), z.unknown()).default({}) })
  .superRefine((s, ctx) => {
    if (!isSetupType(s.type)) return;
    for (const issue of setupParameters[s.type].safeParse(s.parameters).error?.issues ?? [])
      ctx.addIssue({ code: 'custom', message: issue.message, path: ['parameters', ...issue.path] });
  });
const getter = z.union([z.object({ type: z.string().min(1).optional() }).loose(), z.null()]);
const perMetric = <T extends z.ZodType>(one: T) => z.union([z.array(one), one]).optional();
const evaluator = z
  .object({
    func: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]),
    result: perMetric(getter),
    expected: perMetric(getter),
    options: perMetric(z.union([z.record(z.string(), z.unknown()), z.null()])),
    conj: z.enum(['and', 'or']).nullish(),
    postconfig: z.array(step).nullish(),
  })
  .superRefine((e, ctx) => {
    for (const k of ['result', 'expected', 'options'] as const) {
      const v = e[k];
      if (Array.isArray(e.func) && v !== undefined && v !== null) {
        if (Array.isArray(v) ? v.length !== e.func.length : Object.keys(v).length > 0)
          ctx.addIssue({
            code: 'custom',
            path: [k],
            message: `must be a list of ${e.func.length}, one for each metric in func`,
          });
      } else if (!Array.isArray(e.func) && Array.isArray(v))
        ctx.addIssue({ code: 'custom', path: [k], message: 'must not be a list when func is one metric' });
    }
  });
const taskFile = z.object({
  id: z.string().min(1).refine(noNul),
  instruction: z.string().min(1),
  config: z.array(step).nullish(),
  evaluator,
  related_apps: z.union([z.array(z.string()), z.string()]).nullish(),
  proxy: z.boolean().nullish(),
  // Ours, not OSWorld's: a step cap for hand-made tasks.
  max_steps: z.number().int().positive().nullish(),
});

/** OSWorld names its files by uuid and addresses tasks by that name; the id inside is another task's in some files. */
const UUID_FILE = /(?:^|[\\/])([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.json$/i;

/**
 * Read a task from parsed JSON. Throws `task.invalid` naming the file and the field. A task file is its own family; its
 * id is the file's name where that is a uuid.
 */
export function parseTask(json: unknown, file: string): Task {
  const r = taskFile.safeParse(json);
  if (!r.success) {
    const issue = deepest(r.error.issues);
    const field =
      issue.path
        .map((p) => (typeof p === 'number' ? `[${p}]` : `.${String(p)}`))
        .join('')
        .replace(/^\./, '') || '(the file)';
    throw new StudioError(
      'task.invalid',
      `${file}: ${field}: ${issue.message}.`,
      `Correct the field ${field} (the format is OSWorld's task JSON).`,
      { details: { file, field } },
    );
  }
  const t = r.data,
    name = UUID_FILE.exec(file)?.[1] ?? t.id;
  return {
    id: id<TaskId>(name),
    family: id<FamilyId>(name),
    instruction: t.instruction,
    config: (t.config ?? []) as SetupStep[],
    evaluator: {
      ...t.evaluator,
      conj: t.evaluator.conj ?? 'and',
      postconfig: t.evaluator.postconfig ?? [],
    } as Evaluator,
    relatedApps: typeof t.related_apps === 'string' ? [t.related_apps] : (t.related_apps ?? []),
    domain: basename(dirname(resolve(file))) || undefined,
    infeasible: t.evaluator.func === 'infeasible',
    maxSteps: t.max_steps || undefined,
    proxy: t.proxy ? true : undefined,
  };
}

type Issue = { readonly path: readonly PropertyKey[]; readonly message: string };
/** The issue of the branch of a failed union that got furthest, which says most. */
function deepest(issues: readonly z.core.$ZodIssue[]): Issue {
  const flat = (i: z.core.$ZodIssue, base: readonly PropertyKey[]): Issue[] => {
    const at = [...base, ...i.path];
    const inner =
      i.code === 'invalid_union'
        ? i.errors
            .flat()
            .flatMap((e) => flat(e, at))
            .filter((x) => x.path.length > at.length)
        : [];
    return inner.length > 0 ? inner : [{ path: at, message: i.message.replace(/\.$/, '') }];
  };
  const all = issues.flatMap((i) => flat(i, []));
  return all.reduce(
    (a, b) => (b.path.length > a.path.length ? b : a),
    all[0] ?? { path: [], message: 'is not a task' },
  );
}

/** Far larger than any task file; parsing it holds up the event loop for some 10 ms. */
const MAX_FILE_BYTES = 1024 * 1024,
  BOUNDS = { depth: 64, values: 20_000 };

/** The content of a task file. Rejects with `task.invalid`. */
export async function readJson(file: string): Promise<unknown> {
  const invalid = (why: string, cause?: unknown): StudioError =>
    new StudioError('task.invalid', `${file}: ${why}.`, "Give a JSON file in OSWorld's task format.", {
      details: { file },
      cause,
    });
  let data: Buffer;
  try {
    data = await readForeign(file, MAX_FILE_BYTES);
  } catch (cause) {
    throw invalid(cause instanceof ForeignFileError ? cause.message : 'cannot be read', cause);
  }
  const text = data.toString('utf8').replace(/^\uFEFF/, '');
  return foreignJson(text, BOUNDS, (why, _, cause) => invalid(why, cause));
}
