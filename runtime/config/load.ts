import { foreignJson, isObject } from '../foreign/json.js';
import { jsonFault } from '../foreign/jsonFault.js';
import { z } from 'zod';
import { StudioError, messageOf, type PresetName } from '../domain/index.js';
import { EARLIER_PRESETS, PRESETS } from './presets/index.js';
import { RENAMED_OPTIONS, withNewNames } from './renamed.js';
import { remarks, violations } from './rules.js';
import { declaredPolicies } from './policies/index.js';
import { runFileSchema } from './runFileSchema.js';
import type { RunConfig, RunFile } from './schema.js';

/** Merges `over` into `base`: objects key by key, everything else is replaced. */
export function merge(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over === undefined ? base : over;
  const out: Record<string, unknown> = { ...base };
  for (const [k, v] of Object.entries(over)) out[k] = k in base ? merge(base[k], v) : v;
  return out;
}

/** Edit distance, for "did you mean". */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length]!;
}

export interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  default?: unknown;
  [keyword: string]: unknown;
}

let known: { readonly of: unknown; readonly schema: JsonSchema } | undefined;
function keysAt(path: readonly PropertyKey[]): string[] {
  const of = runFileSchema();
  if (known?.of !== of) known = { of, schema: jsonSchema() };
  let s: JsonSchema | undefined = known.schema;
  for (const p of path) s = typeof p === 'number' ? s?.items : s?.properties?.[String(p)];
  return Object.entries(s?.properties ?? {}).flatMap(([k, v]) => (v['deprecated'] === true ? [] : [k]));
}

/** A problem at one place of a run file. */
export interface RunFileProblem {
  /** Names and indices of the value, or of the key that should not be there; empty: the file itself. */
  readonly path: readonly (string | number)[];
  readonly what: string;
  /** Line of the text, from 1, where it is no JSON. */
  readonly line?: number;
}
/** The single problems in an error of `parseRunFile` or `parseRunText`. */
export function problemsOf(e: unknown): readonly RunFileProblem[] {
  const { problems } = (e instanceof StudioError ? (e.error.details ?? {}) : {}) as {
    readonly problems?: readonly RunFileProblem[];
  };
  return problems ?? [];
}

/** Problems that are told, and unknown keys of one place; a file that has more is no run file. */
const MOST_TOLD = 30,
  /** No key of ours is longer, and looking for one that is alike takes time by the length. */
  LONGEST_KEY = 40;
/** The problems: where, what, and the nearest known key for a misspelt one. */
function problems(issues: readonly z.core.$ZodIssue[]): RunFileProblem[] {
  return issues.slice(0, MOST_TOLD).flatMap((i): RunFileProblem[] => {
    const path = i.path.map((p) => (typeof p === 'number' ? p : String(p)));
    if (i.code !== 'unrecognized_keys') return [{ path, what: i.message.slice(0, 1000) }];
    const known = keysAt(i.path);
    return i.keys
      .slice(0, MOST_TOLD)
      .map((k) => ({ path: [...path, k], what: `unknown key "${short(k)}"${alike(k, known)}` }));
  });
}
function alike(key: string, known: readonly string[]): string {
  if (key.length > LONGEST_KEY) return '';
  const all = known.map((k) => ({ k, far: distance(k, key) })),
    [best] = all.sort((a, b) => a.far - b.far);
  return best && best.far <= 3 ? `; did you mean "${best.k}"?` : '';
}
const short = (s: string): string => (s.length > 120 ? `${s.slice(0, 120)}…` : s);
/** One line per problem. A key that should not be there is reported at the section that has it. */
const explain = (all: readonly RunFileProblem[]): string =>
  all
    .map(({ path, what }) => {
      const at = what.startsWith('unknown key') ? path.slice(0, -1) : path;
      return `${at.length > 0 ? short(at.join('.')) : 'the run file'}: ${what}`;
    })
    .join('\n');

/** Called with what the user of a run file should know, such as an option given by an old name; it is read all the same. */
export type OnNote = (note: string) => void;

/**
 * A run file's content as a complete configuration. Throws `config.invalid` naming every wrong key at once. Option
 * names and presets of earlier versions are read too; `onNote` is called for each.
 */
export function parseRunFile(content: unknown, overrides: RunFile = {}, onNote?: OnNote): RunConfig {
  if (!isObject(content))
    throw new StudioError(
      'config.invalid',
      'A run file must be a JSON object.',
      'Start from `{ "preset": "quickstart" }`.',
    );
  const named = withNewNames(content);
  for (const note of named.notes) onNote?.(note);
  const own = merge(underSuite(named.content, overrides), overrides) as RunFile,
    whole = deterministicDefaults(withPreset(own, onNote), own);
  const r = runFileSchema().safeParse(merge(defaultsOf(whole), whole));
  if (!r.success) {
    const found = problems(r.error.issues);
    throw new StudioError(
      'config.invalid',
      explain(found),
      'Fix these keys; `dart-studio schema` prints every key with its meaning.',
      { details: { problems: found } },
    );
  }
  const broken = violations(r.data);
  if (broken.length > 0)
    throw new StudioError(
      'config.invalid',
      broken.map((v) => `${v.key}: ${v.what}`).join('\n'),
      broken.map((v) => v.remedy).join('\n'),
      {
        details: {
          problems: broken.map((v): RunFileProblem => ({ path: v.key.split('.'), what: `${v.what}. ${v.remedy}` })),
        },
      },
    );
  for (const note of remarks(r.data)) onNote?.(note);
  return r.data;
}

/** The run file together with its preset; a preset of an earlier version is spelt out. */
function withPreset(own: RunFile, onNote: OnNote | undefined): RunFile {
  const name: unknown = own.preset;
  // Anything but a name is said by the schema.
  if (typeof name !== 'string') return own;
  if (Object.hasOwn(PRESETS, name)) return merge(underSuite(PRESETS[name as PresetName], own), own) as RunFile;
  if (!Object.hasOwn(EARLIER_PRESETS, name)) return own;
  const { file, note } = EARLIER_PRESETS[name]!,
    { preset: _, ...keys } = own;
  onNote?.(note);
  return merge(file, keys) as RunFile;
}

/** The suite of a run file that may not be valid. */
export const suiteOf = ({ tasks }: { readonly tasks?: unknown }): unknown =>
  (isObject(tasks) ? tasks['suite'] : undefined) ?? 'desk';
/** Without its families, which belong to a suite, where `over` names another suite. */
function underSuite<T extends { readonly tasks?: unknown }>(base: T, over: { readonly tasks?: unknown }): T {
  const { tasks } = base,
    another = isObject(over.tasks) && over.tasks['suite'] !== undefined && suiteOf(over) !== suiteOf(base);
  if (!another || !isObject(tasks)) return base;
  const { families: _, ...others } = tasks;
  return { ...base, tasks: others };
}

/** The defaults of `run.deterministic`; a run file that says otherwise is refused (rules.ts). */
function deterministicDefaults(whole: RunFile, own: RunFile): RunFile {
  const { run }: { readonly run?: unknown } = whole;
  if (!isObject(run) || run['deterministic'] !== true) return whole;
  const { minutes: _, ...counted } = isObject(whole.budget) ? whole.budget : {};
  return merge(
    { ...whole, ...(isObject(whole.budget) || whole.budget === undefined ? { budget: counted } : {}) },
    merge(DETERMINISTIC, own),
  ) as RunFile;
}
const DETERMINISTIC: RunFile = {
  // Whatever comes to rest does so before this, however slow the machine is.
  desktops: { count: 1, settleMaxMs: 10_000 },
  policy: { replicas: 1 },
  rollout: { regime: 'batch' },
  trainer: { threads: 1 },
  evaluation: { everyMinutes: 0 },
};

/** Defaults that are not the schema's, since those are for the embedded policy. */
function defaultsOf(file: RunFile): RunFile {
  const {
    policy,
    tasks,
    desktops,
  }: { readonly policy?: unknown; readonly tasks?: unknown; readonly desktops?: unknown } = file;
  const own = isObject(policy) ? declaredPolicies().find((d) => d.kind === policy['kind'])?.defaults : undefined,
    ofWhole: RunFile = {
      // A browser is larger than the programs of the other images.
      ...(isObject(tasks) && tasks['suite'] === 'miniwob'
        ? { desktops: { image: 'web', memoryMb: 1024, pids: 512 } }
        : {}),
      // OSWorld's own: its tasks lay out windows by it.
      ...(isObject(desktops) && desktops['image'] === 'osworld'
        ? { desktops: { screen: { width: 1920, height: 1080 } } }
        : {}),
    };
  return merge(ofWhole, own) as RunFile;
}

/** Far beyond any run file; parsing as much holds up the event loop for some ms. */
const MOST_CHARACTERS = 1 << 18,
  BOUNDS = { depth: 32, values: 5_000 };
/** Parses JSON text; an error names the line. */
export function parseRunText(text: string, file: string, overrides: RunFile = {}, onNote?: OnNote): RunConfig {
  const tooMuch = (why: string): StudioError =>
    new StudioError('config.invalid', `${file} ${why}.`, 'Give a run file; it has about a hundred options at most.');
  if (text.length > MOST_CHARACTERS) throw tooMuch(`is longer than ${MOST_CHARACTERS} characters`);
  // Some editors begin a file with a byte-order mark, which is no JSON.
  const json = text.startsWith('\uFEFF') ? text.slice(1) : text;
  const content = foreignJson(json, BOUNDS, (why, fault, e) =>
    fault === 'bounds' ? tooMuch(why) : notJson(json, file, e),
  );
  return parseRunFile(content, overrides, onNote);
}
function notJson(text: string, file: string, e: unknown): StudioError {
  const at = jsonFault(text) ?? text.length,
    // A fault at the end is placed on the last line that has something.
    before = at === text.length ? text.trimEnd() : text.slice(0, at),
    line = before.split('\n').length,
    what = `not valid JSON (${messageOf(e)})`;
  return new StudioError(
    'config.invalid',
    `${file}, line ${line}: ${what}`,
    'Fix the JSON; comments and trailing commas are not allowed.',
    { details: { problems: [{ path: [], what, line }] } },
  );
}

/**
 * JSON schema of the run file, draft 2020-12. Old option names are in it as deprecated copies of the new ones, so that
 * an editor suggests the new name instead of reporting an unknown key.
 */
export function jsonSchema(): JsonSchema {
  const schema: JsonSchema = z.toJSONSchema(runFileSchema(), { io: 'input' }) as JsonSchema;
  for (const { from, to } of RENAMED_OPTIONS) {
    const old = from.split('.'),
      parent = sectionAt(schema, old.slice(0, -1)),
      now = sectionAt(schema, to.split('.'));
    if (!parent?.properties || !now) continue;
    const { default: _default, ...copy } = now;
    const message = `Deprecated: renamed to ${to}.`;
    parent.properties[old.at(-1)!] = {
      ...copy,
      description: message,
      deprecated: true,
      deprecationMessage: message,
      doNotSuggest: true,
    };
  }
  return { title: 'DART Studio run file', ...schema };
}
const sectionAt = (schema: JsonSchema, path: readonly string[]): JsonSchema | undefined =>
  path.reduce<JsonSchema | undefined>((s, k) => s?.properties?.[k], schema);
