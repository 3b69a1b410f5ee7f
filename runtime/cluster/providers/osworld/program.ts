import type { Action, Size } from '../../../domain/index.js';
import { actionsCode } from '../../../domain/pyautogui/write.js';

/** The beginning of OSWorld's own controller, without pyautogui's pause of 0.1 s after every call. */
const PREFIX = 'import pyautogui; import time; import pyperclip; pyautogui.FAILSAFE = False; pyautogui.PAUSE = 0; ';
const PLAIN = PREFIX.replace(' import pyperclip;', '');

/**
 * An action as the Python that a server of OSWorld runs. `wait` is no program, and what ends an episode cannot be
 * performed.
 */
export const programOf = (a: Action, screen: Size): readonly string[] =>
  pythonOf([
    a.type === 'type'
      ? typed(a.text, screen)
      : a.type === 'hotkey' && a.keys.includes('<')
        ? actionsCode([{ ...a, keys: a.keys.flatMap((k) => (k === '<' ? ['shift', ','] : [k])) }], 'absolute', screen)
        : actionsCode([a], 'absolute', screen),
  ]);
export function pythonOf(lines: readonly string[]): readonly string[] {
  const code = lines.join('\n');
  return ['python', '-c', (code.includes('pyperclip.') ? PREFIX : PLAIN) + code];
}

/**
 * Text as its keys. pyautogui writes `<` as `>` on a US keyboard (OSWorld, issue 257), so that key is pressed as a chord.
 */
export function typed(text: string, screen: Size): string {
  const whole = text.replace(ALONE, '\ufffd');
  // The second of two pastes may overtake the first: other text goes through the clipboard once.
  if (!/^[\x20-\x7e\n\t]*$/.test(whole)) return actionsCode([{ type: 'type', text: whole }], 'absolute', screen);
  return whole
    .split(/(<)/)
    .filter((part) => part !== '')
    .map((part) =>
      part === '<' ? "pyautogui.hotkey('shift', ',')" : actionsCode([{ type: 'type', text: part }], 'absolute', screen),
    )
    .join('\n');
}

/** Halves of a character, which no program can be given. */
const ALONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Bytes of standard output and of standard error that are kept; the rest is thrown away inside. */
export const KEPT_OUT = 2 << 20,
  KEPT_ERR = 256 << 10;
/**
 * Runs "$@" in $1 with standard input from $2, and ends it after $3 seconds. Its output goes through files: what it
 * leaves running would hold a pipe, and bytes that are no text would be an error. Exit status: the command's.
 */
const RUN = `cd "$1" 2>/dev/null || cd /
in=$2 s=$3; shift 3
d=$(mktemp -d || mktemp -d -p /dev/shm || mktemp -d -p "$HOME") 2>/dev/null || exit 125
timeout -s KILL "$s" "$@" <"$in" >"$d/o" 2>"$d/e"; c=$?
head -c ${KEPT_OUT} "$d/o" | base64 -w0; echo
head -c ${KEPT_ERR} "$d/e" | base64 -w0; echo
rm -rf "$d"; exit $c`;

export interface CommandPlan {
  readonly cmd: readonly string[];
  readonly cwd: string;
  readonly stdin: string;
  readonly seconds: number;
  readonly env: Readonly<Record<string, string>>;
}
export const commandOf = (p: CommandPlan): readonly string[] => [
  '/bin/sh',
  '-c',
  RUN,
  'dart',
  p.cwd,
  p.stdin,
  String(p.seconds),
  ...(Object.keys(p.env).length > 0 ? ['env', ...Object.entries(p.env).map(([k, v]) => `${k}=${v}`)] : []),
  ...p.cmd,
];

/** Starts a program that outlives the command, and prints its process id. */
const START = `cd "$1" 2>/dev/null || cd /
command -v "$2" >/dev/null 2>&1 || exit 127
shift 2; setsid "$@" </dev/null >/dev/null 2>&1 & echo $!`;
export const startOf = (p: Omit<CommandPlan, 'stdin' | 'seconds'>): readonly string[] => [
  '/bin/sh',
  '-c',
  START,
  'dart',
  p.cwd,
  p.cmd[0] ?? '',
  ...(Object.keys(p.env).length > 0 ? ['env', ...Object.entries(p.env).map(([k, v]) => `${k}=${v}`)] : []),
  ...p.cmd,
];

/** Both streams of the command, from the output of RUN. Undefined for anything else. */
export function streamsOf(output: unknown): { readonly stdout: Buffer; readonly stderr: Buffer } | undefined {
  if (typeof output !== 'string') return undefined;
  const lines = output.split('\n', 3);
  if (lines.length < 2 || !lines.slice(0, 2).every((l) => BASE64.test(l.slice(-4)))) return undefined;
  return { stdout: Buffer.from(lines[0]!, 'base64'), stderr: Buffer.from(lines[1]!, 'base64') };
}
/** The end of a text in base64; what comes before is decoded whatever it is. */
const BASE64 = /^(?:[\w+/]{2}(?:==|[\w+/](?:=|[\w+/])))?$/;

/** `timeout` says this of a program that it cannot start. */
export function notStarted(code: number | null, stderr: Buffer): 'ENOENT' | 'EACCES' | undefined {
  if ((code !== 126 && code !== 127) || !/^(?:timeout|env): /.test(stderr.toString('utf8', 0, 16))) return undefined;
  return code === 127 ? 'ENOENT' : 'EACCES';
}
