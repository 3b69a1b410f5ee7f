/**
 * UI-TARS's answers as a tree: `Thought: ...\nAction: name(arg='value', ...)`, also with Reflection / Action_Summary
 * and several actions. A tokenizer reads quoted strings properly (escapes, quotes and commas inside texts), which
 * splitting at commas cannot. Nothing is evaluated. Grammar and the forms seen in the wild:
 * runtime/policy/README.md#ui-tars-grammar.
 *
 *   answer := [thought] ('Action' ':') call+            call := name '(' [arg (',' arg)*] ')'
 *   arg := name '=' (string | bare)                     bare := brackets, numbers or box tags up to the next ',' or ')'
 */
import { StudioError } from '../../domain/index.js';

export interface Arg {
  readonly name: string;
  readonly value: string;
  /** Offset of the value in the answer. */
  readonly at: number;
}
export interface Call {
  readonly name: string;
  readonly args: readonly Arg[];
  readonly at: number;
}
export interface Answer {
  readonly thought?: string;
  readonly reflection?: string;
  readonly calls: readonly Call[];
}

/** The answer is not in the grammar; `position` is the offset of the first character that does not fit. */
export class GrammarError extends StudioError {
  readonly position: number;
  constructor(message: string, position: number, text: string) {
    super(
      'policy.invalid',
      `${message} at character ${position}`,
      'The model is expected to answer in the UI-TARS grammar (Thought: ... Action: click(...)).',
      { details: { position, text } },
    );
    this.name = 'GrammarError';
    this.position = position;
  }
}

const MARKER = /(?<![\w])Action\s*[:\uff1a]/g;
/** End-of-turn tokens that a server may leave in the text. */
const TRAILERS = ['<|im_end|>', '<|endoftext|>', '</s>', '</Output>'];

/**
 * A model's answer of a few thousand tokens is far below these limits. A server may send anything, and each place where
 * the calls may begin is read up to its first error.
 */
export const MOST_CHARACTERS = 32_768;
const MOST_MARKERS = 32,
  MOST_CALLS = 200,
  /** Characters read at all these places together. */
  MOST_SPENT = 65_536;

/** Throws GrammarError. */
export function parseAnswer(text: string): Answer {
  if (text.length > MOST_CHARACTERS)
    throw new GrammarError(
      `The answer has ${text.length} characters, and at most ${MOST_CHARACTERS} are read; it is cut short`,
      MOST_CHARACTERS,
      text.slice(0, MOST_CHARACTERS),
    );
  const end = endOf(text),
    markers: RegExpExecArray[] = [];
  for (const m of text.slice(0, end).matchAll(MARKER)) if (markers.push(m) === MOST_MARKERS) break;
  if (markers.length === 0) {
    const thought = /Thought\s*[:\uff1a]|Reflection\s*[:\uff1a]/.exec(text);
    if (thought) throw new GrammarError('The answer has a thought but no action', end, text);
    return { calls: new Parser(text, 0, end).calls() };
  }
  // The word "Action:" may also occur in the thought or in a text to type: the calls begin at the first place from
  // which everything can be parsed.
  let furthest: GrammarError | undefined,
    spent = 0;
  for (const m of markers) {
    const from = m.index + m[0].length,
      parser = new Parser(text, from, end);
    try {
      const calls = parser.calls();
      return { ...preamble(text.slice(0, m.index)), calls };
    } catch (e) {
      if (!(e instanceof GrammarError)) throw e;
      if (!furthest || e.position > furthest.position) furthest = e;
    }
    spent += parser.at - from;
    if (spent > MOST_SPENT) break;
  }
  throw furthest!;
}

/** End of the answer's text, before the trailers and white space behind it, read from the right. */
export function endOf(text: string): number {
  for (let end = text.length; ;) {
    const last = text.slice(0, end).trimEnd().length,
      trailer = TRAILERS.find((t) => text.endsWith(t, last));
    if (!trailer) return last;
    end = last - trailer.length;
  }
}

function preamble(s: string): { thought?: string; reflection?: string } {
  const both = /^\s*Reflection\s*[:\uff1a]([\s\S]*?)Action_Summary\s*[:\uff1a]([\s\S]*)$/.exec(s);
  if (both) return { ...named('reflection', both[1]!), ...named('thought', both[2]!) };
  return named('thought', /(?:Thought|Action_Summary)\s*[:\uff1a]([\s\S]*)$/.exec(s)?.[1] ?? s);
}
const named = (key: 'thought' | 'reflection', s: string): { thought?: string; reflection?: string } =>
  s.trim() === '' ? {} : { [key]: s.trim() };

const NAME = /[A-Za-z_]\w*/y;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '\\': '\\', "'": "'", '"': '"' };
const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']' };

class Parser {
  readonly #text: string;
  readonly #end: number;
  #i: number;
  constructor(text: string, from: number, end: number) {
    this.#text = text;
    this.#i = from;
    this.#end = end;
  }

  /** How far it has read. */
  get at(): number {
    return this.#i;
  }

  calls(): Call[] {
    const out: Call[] = [];
    for (this.#space(); this.#i < this.#end; this.#space()) {
      if (out.length === MOST_CALLS) throw this.#error(`More than ${MOST_CALLS} actions`);
      out.push(this.#call());
      this.#space();
      if (this.#peek() === ';') this.#i++;
    }
    if (out.length === 0) throw this.#error('An action is missing');
    return out;
  }

  #call(): Call {
    const at = this.#i,
      name = this.#name('an action name'),
      args: Arg[] = [];
    this.#space();
    this.#expect('(');
    for (this.#space(); this.#peek() !== ')'; this.#space()) {
      if (args.length > 0) {
        this.#expect(',');
        this.#space();
        if (this.#peek() === ')') break;
      }
      args.push(this.#arg());
    }
    this.#expect(')');
    return { name, args, at };
  }

  #arg(): Arg {
    const name = this.#name('an argument name');
    this.#space();
    this.#expect('=');
    this.#space();
    const at = this.#i,
      quote = this.#peek();
    return { name, at, value: quote === "'" || quote === '"' ? this.#string(quote) : this.#bare() };
  }

  /**
   * Python string rules, except that a quote which cannot be the end (`'it's me'`) is taken as a character, and line
   * breaks are allowed.
   */
  #string(quote: string): string {
    const start = this.#i++;
    let out = '';
    for (; this.#i < this.#end; this.#i++) {
      const c = this.#text[this.#i]!;
      if (c === '\\' && this.#i + 1 < this.#end) {
        out += this.#escape();
        continue;
      }
      if (c === quote && this.#closes(this.#i + 1)) {
        this.#i++;
        return out;
      }
      out += c;
    }
    throw this.#error('A text is not closed', start);
  }

  /** After a closing quote comes `)` and then the end, a line break or another call, or `,` and another argument. */
  #closes(j: number): boolean {
    const rest = this.#text.slice(j, this.#end);
    return /^\s*(?:\)\s*(?:$|;|[A-Za-z_]\w*\s*\()|,\s*(?:\)|[A-Za-z_]\w*\s*=))/.test(rest) || rest.trim() === '';
  }

  /**
   * Reads an escape, from its backslash; leaves `i` on its last character. Unknown escapes stay as written, as in
   * Python.
   */
  #escape(): string {
    const c = this.#text[this.#i + 1]!;
    const hex = (c === 'x' ? /^[0-9a-fA-F]{2}/ : c === 'u' ? /^[0-9a-fA-F]{4}/ : undefined)?.exec(
      this.#text.slice(this.#i + 2, Math.min(this.#i + 6, this.#end)),
    )?.[0];
    if (hex !== undefined) {
      this.#i += 1 + hex.length;
      return String.fromCharCode(parseInt(hex, 16));
    }
    this.#i++;
    return ESCAPES[c] ?? `\\${c}`;
  }

  #bare(): string {
    const start = this.#i,
      open: string[] = [];
    for (; this.#i < this.#end; this.#i++) {
      const c = this.#text[this.#i]!;
      if (open.length === 0 && (c === ',' || c === ')')) break;
      if (c in CLOSERS) open.push(CLOSERS[c]!);
      else if (c === open.at(-1)) open.pop();
    }
    const value = this.#text.slice(start, this.#i).trim();
    if (value === '') throw this.#error('A value is missing', start);
    return value;
  }

  #name(what: string): string {
    NAME.lastIndex = this.#i;
    const m = NAME.exec(this.#text);
    if (!m || this.#i >= this.#end) throw this.#error(`Expected ${what}`);
    this.#i += m[0].length;
    return m[0];
  }
  #expect(c: string): void {
    if (this.#peek() !== c) throw this.#error(`Expected '${c}'`);
    this.#i++;
  }
  #peek(): string | undefined {
    return this.#i < this.#end ? this.#text[this.#i] : undefined;
  }
  #space(): void {
    while (this.#i < this.#end && /\s/.test(this.#text[this.#i]!)) this.#i++;
  }
  #error(message: string, at = this.#i): GrammarError {
    return new GrammarError(message, at, this.#text);
  }
}
