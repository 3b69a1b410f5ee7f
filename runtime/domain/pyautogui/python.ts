/**
 * The little Python that recorded actions are written in: imports, texts standing alone, and calls of functions with
 * literal arguments, e.g. `pyautogui.click(960, 540, button='left')`. It is read, never run; whatever else it holds
 * (variables, loops, f-strings) is refused.
 *
 * program := { import | string | setting | call } separated by line breaks or ';'        setting := 'pyautogui.'
 *   (FAILSAFE|PAUSE) '=' literal
 * import := 'import' name ['as' name] { ',' name ['as' name] } | 'from' name 'import' name ['as' name] { ',' ... }
 * call := name { '.' name } '(' [ arg { ',' arg } [','] ] ')'                              arg := [ name '=' ] literal
 *   literal := number | string+ | True | False | None | '[' literals ']' | '(' literals ')'
 */
import { Unusable } from '../../foreign/unusable.js';

export type Literal = number | string | boolean | null | readonly Literal[];
export interface PyCall {
  readonly name: string;
  readonly args: readonly Literal[];
  readonly named: Readonly<Record<string, Literal>>;
}

/** Modules that recorded actions use; importing one does nothing by itself. */
const modules = ['pyautogui', 'time', 'pyperclip', 'computer'];
const maxDepth = 8;

/** Throws Unusable naming what is no call with literal arguments. */
export function parseCalls(code: string): PyCall[] {
  return new Reader(code).program();
}

const NAME = /[A-Za-z_]\w*/y,
  NUMBER = /[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y,
  STRING = /([rRuUbBfF]{0,2})('''|"""|'|")/y;
const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '\\': '\\',
  "'": "'",
  '"': '"',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\n': '',
};

class Reader {
  #i = 0;
  readonly #s: string;
  /** Meaning of names by the imports so far. */
  readonly #imported = new Map<string, string>();
  constructor(code: string) {
    this.#s = code.replace(/\r\n?/g, '\n');
  }

  program(): PyCall[] {
    const out: PyCall[] = [];
    for (this.#gap(true); this.#i < this.#s.length; this.#gap(true)) {
      const c = this.#statement();
      if (c) out.push(c);
      this.#gap(false);
      if (this.#i < this.#s.length && this.#s[this.#i] !== '\n' && this.#s[this.#i] !== ';') throw this.#refuse();
    }
    return out;
  }

  /** `import a, b as c` and `from a import b as c, d` of the modules that recorded actions use. */
  #import(statement: string): boolean {
    // Trimmed first: a pattern that leaves blanks at the end out takes the square of the time for those before a letter.
    const [, from, list = ''] = /^(?:from\s+(\w+)\s+)?import\s+(.+)$/.exec(statement.trimEnd()) ?? [];
    if (from !== undefined && !modules.includes(from)) return false;
    const parts = list.split(',').map((part) => /^\s*(\w+)(?:\s+as\s+(\w+))?\s*$/.exec(part));
    for (const part of parts) {
      const what = part?.[1],
        as = part?.[2] ?? what;
      if (what === undefined || as === undefined || (from === undefined && !modules.includes(what))) return false;
      this.#imported.set(as, from === undefined ? what : `${from}.${what}`);
    }
    return parts.length > 0;
  }

  #statement(): PyCall | undefined {
    if (this.#string(false) !== undefined) return undefined;
    const start = this.#i,
      first = this.#match(NAME);
    if (first === undefined) throw this.#refuse(start);
    if (first === 'pass') return undefined;
    if (first === 'import' || first === 'from') {
      const words = /^[^;#\n]*/.exec(this.#s.slice(this.#i))![0];
      if (!this.#import(`${first}${words}`)) throw this.#refuse(start);
      this.#i += words.length;
      return undefined;
    }
    // Resolves an imported name: `import pyautogui as p`, `from time import sleep`.
    let name = this.#imported.get(first) ?? first;
    while (this.#s[this.#i] === '.') {
      this.#i++;
      const part = this.#match(NAME);
      if (part === undefined) throw this.#refuse(start);
      name += `.${part}`;
    }
    this.#gap(false);
    if (this.#s[this.#i] === '=' && /^pyautogui\.(FAILSAFE|PAUSE|MINIMUM_DURATION)$/.test(name)) {
      this.#i++;
      this.#gap(false);
      this.#literal(0);
      return undefined;
    }
    if (this.#s[this.#i] !== '(') throw this.#refuse(start);
    this.#i++;
    const args: Literal[] = [],
      named: Record<string, Literal> = {};
    for (this.#space(); this.#s[this.#i] !== ')'; this.#space()) {
      const key = /^([A-Za-z_]\w*)\s*=(?!=)/.exec(this.#s.slice(this.#i, this.#i + 80));
      if (key) {
        this.#i += key[0].length;
        this.#space();
        if (Object.hasOwn(named, key[1]!)) throw this.#refuse(start);
        Object.defineProperty(named, key[1]!, { value: this.#literal(0), enumerable: true });
      } else if (Object.keys(named).length > 0) throw this.#refuse(start);
      else args.push(this.#literal(0));
      this.#space();
      if (this.#s[this.#i] === ',') this.#i++;
      else if (this.#s[this.#i] !== ')') throw this.#refuse(start);
    }
    this.#i++;
    return { name, args, named };
  }

  #literal(depth: number): Literal {
    if (depth > maxDepth) throw this.#refuse();
    const c = this.#s[this.#i];
    if (c === '[' || c === '(') {
      const close = c === '[' ? ']' : ')',
        out: Literal[] = [];
      this.#i++;
      for (this.#space(); this.#s[this.#i] !== close; this.#space()) {
        out.push(this.#literal(depth + 1));
        this.#space();
        if (this.#s[this.#i] === ',') this.#i++;
        else if (this.#s[this.#i] !== close) throw this.#refuse();
      }
      this.#i++;
      return out;
    }
    const text = this.#string(true);
    if (text !== undefined) return text;
    const start = this.#i,
      number = this.#match(NUMBER);
    if (number !== undefined) {
      const n = Number(number.replace(/_/g, ''));
      if (!Number.isFinite(n) || /[\w.]/.test(this.#s[this.#i] ?? '')) throw this.#refuse(start);
      return n;
    }
    const word = this.#match(NAME);
    if (word === 'True') return true;
    if (word === 'False') return false;
    if (word === 'None') return null;
    throw this.#refuse(start);
  }

  /** Reads one or more texts side by side, inside brackets also on several lines; undefined when there is none here. */
  #string(inside: boolean): string | undefined {
    let out: string | undefined;
    for (;;) {
      STRING.lastIndex = this.#i;
      const m = STRING.exec(this.#s);
      if (!m) return out;
      const prefix = m[1]!.toLowerCase(),
        quote = m[2]!;
      if (/[fb]/.test(prefix)) throw this.#refuse();
      this.#i += m[0].length;
      out = (out ?? '') + this.#body(quote, prefix.includes('r'));
      if (inside) this.#space();
      else this.#gap(false);
    }
  }
  #body(quote: string, raw: boolean): string {
    let out = '';
    for (const start = this.#i; ;) {
      const c = this.#s[this.#i];
      if (c === undefined || (c === '\n' && quote.length === 1)) throw this.#refuse(start - quote.length);
      if (this.#s.startsWith(quote, this.#i)) {
        this.#i += quote.length;
        return out;
      }
      if (c === '\\') {
        out += raw ? this.#s.slice(this.#i, (this.#i += 2)) : this.#escape();
        continue;
      }
      out += c;
      this.#i++;
    }
  }
  #escape(): string {
    const hex = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/.exec(
      this.#s.slice(this.#i, this.#i + 10),
    );
    if (hex) {
      const code = parseInt((hex[1] ?? hex[2] ?? hex[3])!, 16);
      if (code > 0x10ffff) throw this.#refuse();
      this.#i += hex[0].length;
      return code > 0xffff ? String.fromCodePoint(code) : String.fromCharCode(code);
    }
    const octal = /^\\([0-7]{1,3})/.exec(this.#s.slice(this.#i, this.#i + 4));
    if (octal) {
      this.#i += octal[0].length;
      return String.fromCharCode(parseInt(octal[1]!, 8));
    }
    const c = this.#s[this.#i + 1] ?? '';
    this.#i += 1 + c.length;
    // As in Python, an unknown escape stays as it is written.
    return Object.hasOwn(ESCAPES, c) ? ESCAPES[c]! : `\\${c}`;
  }

  #match(re: RegExp): string | undefined {
    re.lastIndex = this.#i;
    const m = re.exec(this.#s)?.[0];
    if (m !== undefined) this.#i += m.length;
    return m;
  }
  /** Blanks and comments; with `all`, line breaks and ';' too. */
  #gap(all: boolean): void {
    for (;;) {
      const c = this.#s[this.#i];
      if (c === ' ' || c === '\t' || (all && (c === '\n' || c === ';'))) this.#i++;
      else if (c === '#') this.#i = this.#end();
      else if (c === '\\' && this.#s[this.#i + 1] === '\n') this.#i += 2;
      else return;
    }
  }
  /** Inside brackets line breaks mean nothing. */
  #space(): void {
    for (;;) {
      this.#gap(false);
      if (this.#s[this.#i] !== '\n') return;
      this.#i++;
    }
  }
  #end(): number {
    const n = this.#s.indexOf('\n', this.#i);
    return n < 0 ? this.#s.length : n;
  }
  #refuse(at = this.#i): Unusable {
    const line = this.#s
      .slice(this.#s.lastIndexOf('\n', at - 1) + 1)
      .split('\n')[0]!
      .trim();
    return new Unusable(
      `the code '${line.length > 80 ? `${line.slice(0, 80)}…` : line}' is more than a call with plain values`,
    );
  }
}

/** A text as Python source. */
export const pyString = (s: string): string =>
  `'${s
    .replace(/[\\']/g, '\\$&')
    .replace(/\n/g, '\\n')
    .replace(/\r/g, '\\r')
    .replace(/\t/g, '\\t')
    .replace(
      /[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]/gu,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )}'`;
