import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StudioError } from '../domain/index.js';

/**
 * Throws `config.invalid` for an option that `python -m dart_engine serve` does not have: said at once, and not after 5
 * GB are installed. `source`: the engine's files, whose own list of options is read.
 */
export async function checkEngineFlags(rest: readonly string[], source: string): Promise<void> {
  const text = await readFile(join(source, 'dart_engine', '__main__.py'), 'utf8'),
    [, body = ''] = /def _serve_options\(.*\n([^]*?)(?=\n\n\ndef |$(?![^]))/.exec(text) ?? [],
    known = [...body.matchAll(/add\("(--[\w-]+)"(.*)/g)].flatMap(([, flag, more]) =>
      more!.includes('BooleanOptionalAction') ? [flag!, `--no-${flag!.slice(2)}`] : [flag!],
    );
  // Another way of listing them is no reason to refuse any.
  if (known.length === 0) return;
  const asked = rest.filter((r) => r.startsWith('--') && r !== '--').map((r) => r.split('=')[0]!),
    // Python takes the beginning of an option for the option.
    unknown = asked.find((a) => a !== '--help' && !known.some((k) => k.startsWith(a)));
  if (unknown !== undefined)
    throw new StudioError(
      'config.invalid',
      `engine serve: there is no option ${unknown}.`,
      '`dart-studio engine serve --help` and the page of the engine list them.',
    );
}
