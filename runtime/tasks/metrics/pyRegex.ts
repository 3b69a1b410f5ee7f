/**
 * Compile a Python regular expression (the syntax that task files use) for JavaScript: named groups, \A \Z, `$` before
 * a last newline, Unicode \w and \d, needless escapes, literal braces, leading (?ims) flags. Throws SyntaxError.
 */
export function pyRegex(source: string, flags: readonly string[] = []): RegExp {
  const on = new Set(['u']);
  for (const f of flags) on.add(flagOf(f));
  const inline = /^\(\?([aimsuxL]+)\)/.exec(source);
  for (const f of inline?.[1] ?? '') on.add(flagOf(f.toUpperCase()));
  on.delete('');
  return new RegExp(
    translate(inline ? source.slice(inline[0].length) : source, on.has('m'), on.has('s')),
    [...on].join(''),
  );
}

const FLAGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    I: 'i',
    IGNORECASE: 'i',
    M: 'm',
    MULTILINE: 'm',
    S: 's',
    DOTALL: 's',
    U: '',
    UNICODE: '',
    A: '',
    ASCII: '',
  }),
);
function flagOf(name: string): string {
  const f = FLAGS.get(name);
  if (f === undefined) throw new SyntaxError(`the regular expression flag ${name} is not supported`);
  return f;
}

const WORD = String.raw`\p{L}\p{N}_`;
const CLASS_ESCAPES: Readonly<Record<string, string>> = { w: WORD, d: String.raw`\p{Nd}`, a: String.raw`\x07` };
const ESCAPES: Readonly<Record<string, string>> = {
  w: `[${WORD}]`,
  W: `[^${WORD}]`,
  d: String.raw`\p{Nd}`,
  D: String.raw`\P{Nd}`,
  A: '(?<![^])',
  Z: '(?![^])',
  a: String.raw`\x07`,
};
const SYNTAX = /[\^$\\.*+?()[\]{}|/]/;

function translate(s: string, multiline: boolean, dotAll: boolean): string {
  let out = '',
    inClass = false;
  for (let i = 0; i < s.length; i++) {
    const c = s[i]!;
    if (c === '\\') {
      const n = s[++i] ?? '';
      const special = (inClass ? CLASS_ESCAPES : ESCAPES)[n];
      out += special ?? (/[\p{L}\p{N}]/u.test(n) || SYNTAX.test(n) || (inClass && n === '-') ? `\\${n}` : n);
    } else if (inClass) {
      if (c === ']') inClass = false;
      out += c === '[' ? '\\[' : c;
    } else if (c === '[') {
      inClass = true;
      out += s[i + 1] === '^' ? s[++i] && '[^' : '[';
      // A bracket right at the start is a member.
      if (s[i + 1] === ']') {
        out += '\\]';
        i++;
      }
    } else if (c === '(' && s.startsWith('(?P<', i)) {
      out += '(?<';
      i += 3;
    } else if (c === '(' && s.startsWith('(?P=', i)) {
      const end = s.indexOf(')', i);
      if (end < 0) throw new SyntaxError('a (?P=name) of the regular expression is not closed');
      out += `\\k<${s.slice(i + 4, end)}>`;
      i = end;
    } else if (c === '.' && !dotAll) out += '[^\\n]';
    else if (c === '$') out += multiline ? '(?=\\n|(?![^]))' : '(?=\\n?(?![^]))';
    else if (c === '^' && multiline) out += '(?<![^\\n])';
    else if (c === '{' && !/^\{(\d+(,\d*)?|,\d+)\}/.test(s.slice(i))) out += '\\{';
    else if (c === '{') {
      const end = s.indexOf('}', i);
      out += s.slice(i, end + 1).replace('{,', '{0,');
      i = end;
    } else out += c === '}' || c === ']' ? `\\${c}` : c;
  }
  return out;
}
