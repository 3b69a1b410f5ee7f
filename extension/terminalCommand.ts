/**
 * `dart-studio` in the editor's terminals: what messages and pages tell people to type is the runtime's command line,
 * which no PATH has after an installation from a VSIX.
 */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { EnvironmentVariableCollection } from 'vscode';
import { orUndefined } from '../runtime/protocol/failures.js';
import { shellQuoted } from '../runtime/protocol/shared.js';
import { t } from './words.js';

export interface TerminalCommandOptions {
  /** The extension's folder for data of this machine. */
  readonly storage: string;
  /** dist/runtime.js of this installation. */
  readonly runtime: string;
  /** The program that runs it: Node, or the editor, which is Node when told so. */
  readonly node: string;
  readonly windows: boolean;
}

/** Writes the command into a folder of its own and puts that first on the PATH of terminals that open from now on. */
export async function offerCommand(
  o: TerminalCommandOptions,
  terminals: Pick<EnvironmentVariableCollection, 'prepend' | 'persistent' | 'description'>,
): Promise<void> {
  const bin = join(o.storage, 'bin'),
    { name, text } = o.windows ? batchFile(o) : shellScript(o);
  await mkdir(bin, { recursive: true });
  await write(join(bin, name), text);
  // Kept for windows in which the extension has nothing to do yet: the folder has the command of the newest that was
  // used.
  terminals.persistent = true;
  terminals.description = t('The command `dart-studio`');
  terminals.prepend('PATH', `${bin}${delimiter}`, { applyAtProcessCreation: true, applyAtShellIntegration: true });
}

/** An update of the extension lies in another folder. */
const MOVED = 'DART Studio was updated or removed: open its view in VS Code once, then try again.';

interface Script {
  readonly name: string;
  readonly text: string;
}
function shellScript({ node, runtime }: TerminalCommandOptions): Script {
  const [program, bundle] = [shellQuoted(node), shellQuoted(runtime)];
  return {
    name: 'dart-studio',
    text: `#!/bin/sh\n[ -e ${bundle} ] || { echo ${shellQuoted(MOVED)} >&2; exit 127; }\nELECTRON_RUN_AS_NODE=1 exec ${program} ${bundle} "$@"\n`,
  };
}
/** A per cent sign in a path would begin a variable. */
function batchFile({ node, runtime }: TerminalCommandOptions): Script {
  const quoted = [node, runtime].map((p) => `"${p.replaceAll('%', '%%')}"`);
  return {
    name: 'dart-studio.cmd',
    text: `@echo off\r\nsetlocal\r\nset ELECTRON_RUN_AS_NODE=1\r\n${quoted.join(' ')} %*\r\n`,
  };
}

/** Whole or not at all: another window may be running what is there. */
async function write(file: string, text: string): Promise<void> {
  if ((await orUndefined(readFile(file, 'utf8'), 'it is written')) === text) return;
  const next = `${file}.${process.pid}`;
  await writeFile(next, text);
  await chmod(next, 0o755);
  await rename(next, file);
}
