import { isDict } from './values.js';

/** Longest name of a check: one line of the inspector's table. */
const NAME = 60;
/** Longest detail that is kept of a script. */
const DETAIL = 8000;

/**
 * The name of a check: its metric and what it looks at, in at most 60 characters; `detail`: everything it looks at,
 * where the name leaves something out.
 */
export function checkName(func: string, config: unknown): { readonly what: string; readonly detail?: string } {
  const { kind, of, whole, title } = subjectOf(config),
    start = [`${func.slice(0, NAME / 2)}:`, kind, ''].filter((x, i) => x !== '' || i === 2).join(' '),
    short = shorten(title ?? of, NAME - start.length, kind);
  return {
    what: `${start}${short}`.trim(),
    ...(short === of ? {} : { detail: whole.length > DETAIL ? `${whole.slice(0, DETAIL - 1)}…` : whole }),
  };
}
/** The same without a metric. */
export function subject(config: unknown): string {
  const { kind, of, title } = subjectOf(config);
  return `${kind} ${shorten(title ?? of, NAME - kind.length - 1, kind)}`.trim();
}

/**
 * `of`: what to name, a script without its shell; `whole`: all of it; `title`: a suite's own words for what its script
 * looks at.
 */
interface Subject {
  readonly kind: string;
  readonly of: string;
  readonly whole: string;
  readonly title?: string;
}
function subjectOf(c: unknown): Subject {
  if (!isDict(c) || Object.keys(c).length === 0) return { kind: 'nothing', of: '', whole: '' };
  const type = String(c['type']),
    { command, title } = c,
    words = (v: unknown): string => (Array.isArray(v) ? v.join(' ') : String(v));
  if (command === undefined || command === null) {
    const of = words(c['path'] ?? c['file_name'] ?? c['app_class_name'] ?? '');
    return { kind: type, of, whole: `${type} ${of}` };
  }
  const script =
      Array.isArray(command) && /^(.*\/)?\w*sh$/.test(String(command[0])) && /^-\w*c$/.test(String(command[1]))
        ? words(command.slice(2))
        : words(command),
    whole = words(command);
  if (typeof title === 'string' && title !== '') return { kind: '', of: script, whole, title };
  return {
    kind: type === 'vm_command_line' ? 'command' : type === 'vm_command_error' ? 'errors of' : type,
    of: script,
    whole,
  };
}

/**
 * The first words of the first line, less that errors are thrown away; of what is no script the end, where a path has
 * its name.
 */
function shorten(text: string, room: number, kind: string): string {
  if (text.length <= room && !/\n|2>/.test(text)) return text;
  if (text.startsWith('/') && kind !== 'command' && kind !== '') return `…${text.slice(text.length - room + 1)}`;
  const clean = withoutSilencing(text.trim()),
    [line = ''] = clean.split('\n');
  if (line === clean && line.length <= room) return line;
  if (line.length + 2 <= room) return `${line} …`;
  const cut = line.slice(0, room - 2),
    word = cut.lastIndexOf(' ');
  return `${word > room / 3 ? cut.slice(0, word) : cut} …`;
}

/** A script without ` 2>/dev/null` and the blanks before it. */
export function withoutSilencing(script: string): string {
  const parts = script.split(/2>\s*\/dev\/null/);
  return parts.map((p, k) => (k === parts.length - 1 ? p : p.trimEnd())).join('');
}
