import { StudioError } from '../../domain/index.js';
import { foreignJson } from '../../foreign/json.js';
import { LineTooLong, linesOf } from '../../files/boundedLines.js';

/** A program's output comes in pieces of 32 KB, of which JSON may write every byte as six. */
const MOST_LINE = 256 << 10;
const BOUNDS = { depth: 16, values: 1 << 12 };

/** A line of an engine's progress with a build, a pull or a push; only texts of these names are taken. */
export type EngineLine = Readonly<Partial<Record<(typeof NAMES)[number], string>>>;
const NAMES = ['stream', 'status', 'id', 'progress', 'error'] as const;

/** The lines of an engine's progress stream. Throws `desktop.image` when one is none. */
export async function* engineLines(stream: NodeJS.ReadableStream): AsyncGenerator<EngineLine> {
  try {
    for await (const line of linesOf(stream, MOST_LINE)) if (line.trim() !== '') yield parsed(line);
  } catch (e) {
    if (e instanceof LineTooLong) throw unreadable(e.message);
    throw e;
  }
}

function parsed(line: string): EngineLine {
  const m = foreignJson(line, BOUNDS, (why) => unreadable(`a line that ${why}`));
  if (typeof m !== 'object' || m === null) throw unreadable('a line that is no JSON object');
  const said: Partial<Record<(typeof NAMES)[number], string>> = {};
  for (const name of NAMES) {
    const v = (m as Record<string, unknown>)[name];
    if (typeof v === 'string') said[name] = v;
  }
  return said;
}

const unreadable = (why: string): StudioError =>
  new StudioError(
    'desktop.image',
    `The Docker engine's progress cannot be read: ${why}.`,
    'Check DOCKER_HOST and the hosts of the run file: is a Docker engine at that address?',
  );
