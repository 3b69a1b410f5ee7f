import { z } from 'zod';
import { StudioError, messageOf } from '../domain/index.js';
import { PRESETS } from './presets.js';
import { RENAMED_OPTIONS, withNewNames } from './renamed.js';
import { RunFileSchema, type RunConfig, type RunFile } from './schema.js';

const isObject = (v: unknown): v is Record<string, unknown> => typeof v === 'object' && v !== null && !Array.isArray(v);

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

function keysAt(path: readonly PropertyKey[]): string[] {
  let s: JsonSchema | undefined = jsonSchema();
  for (const p of path) s = typeof p === 'number' ? s?.items : s?.properties?.[String(p)];
  return Object.entries(s?.properties ?? {}).flatMap(([k, v]) => (v['deprecated'] === true ? [] : [k]));
}

/** One line per problem: where, what, and the nearest known key for a misspelt one. */
function explain(issues: readonly z.core.$ZodIssue[]): string {
  return issues
    .map((i) => {
      const at = i.path.length ? i.path.map(String).join('.') : 'the run file';
      if (i.code === 'unrecognized_keys') {
        const known = keysAt(i.path);
        return i.keys
          .map((k) => {
            const best = [...known].sort((a, b) => distance(a, k) - distance(b, k))[0];
            return `${at}: unknown key "${k}"${best && distance(best, k) <= 3 ? `; did you mean "${best}"?` : ''}`;
          })
          .join('\n');
      }
      return `${at}: ${i.message}`;
    })
    .join('\n');
}

/** Called with a note for each option given by an old name; the run file is read all the same. */
export type OnDeprecated = (note: string) => void;

/**
 * A run file's content as a complete configuration. Throws `config.invalid` naming every wrong key at once. Option
 * names of earlier versions are read too; `onDeprecated` is called for each.
 */
export function parseRunFile(content: unknown, overrides: RunFile = {}, onDeprecated?: OnDeprecated): RunConfig {
  if (!isObject(content))
    throw new StudioError(
      'config.invalid',
      'A run file must be a JSON object.',
      'Start from `{ "preset": "quickstart" }`.',
    );
  const named = withNewNames(content);
  for (const note of named.notes) onDeprecated?.(note);
  const own = merge(named.content, overrides) as RunFile;
  const preset = own.preset === undefined ? {} : PRESETS[own.preset];
  const r = RunFileSchema.safeParse(preset ? merge(preset, own) : own);
  if (!r.success)
    throw new StudioError(
      'config.invalid',
      explain(r.error.issues),
      'Correct these keys; `dart-studio schema` prints every key with its meaning.',
    );
  if (r.data.policy.kind === 'openai' && !r.data.policy.openai)
    throw new StudioError(
      'config.invalid',
      'policy.openai: required because policy.kind is "openai"',
      'Set policy.openai.baseUrls and policy.openai.model.',
    );
  if (r.data.policy.kind === 'openai' && r.data.warmStart.from !== undefined)
    throw new StudioError(
      'config.invalid',
      'warmStart.from: a policy behind an endpoint has no checkpoints',
      'Leave warmStart.from out, or set policy.kind to "embedded" or "vlm".',
    );
  if (r.data.tasks.suite === 'folder' && !r.data.tasks.dir)
    throw new StudioError(
      'config.invalid',
      'tasks.dir: required because tasks.suite is "folder"',
      'Set it to the folder that holds the task files.',
    );
  if (r.data.curation.pool.from.length > 0 && !r.data.curation.pool.enabled)
    throw new StudioError(
      'config.invalid',
      'curation.pool.from: the pool is off',
      'Set curation.pool.enabled to true, or leave curation.pool.from out.',
    );
  return r.data;
}

/** Parses JSON text; an error names the line. */
export function parseRunText(
  text: string,
  file: string,
  overrides: RunFile = {},
  onDeprecated?: OnDeprecated,
): RunConfig {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (e) {
    const pos = Number(/position (\d+)/.exec(String(e))?.[1] ?? 0);
    throw new StudioError(
      'config.invalid',
      `${file}, line ${text.slice(0, pos).split('\n').length}: not valid JSON (${messageOf(e)})`,
      'Correct the JSON; comments and trailing commas are not allowed.',
    );
  }
  return parseRunFile(content, overrides, onDeprecated);
}

/**
 * JSON schema of the run file, draft 2020-12. Old option names are in it as deprecated copies of the new ones, so that
 * an editor suggests the new name instead of reporting an unknown key.
 */
export function jsonSchema(): JsonSchema {
  const schema: JsonSchema = z.toJSONSchema(RunFileSchema, { io: 'input' }) as JsonSchema;
  for (const { from, to } of RENAMED_OPTIONS) {
    const old = from.split('.'),
      parent = sectionAt(schema, old.slice(0, -1)),
      now = sectionAt(schema, to.split('.'));
    if (!parent?.properties || !now) continue;
    const { default: _default, ...copy } = now;
    const message = `Deprecated: it is called ${to} now.`;
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
