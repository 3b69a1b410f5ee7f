import { beforeEach, expect, it, vi } from 'vitest';
import type { RunFileOptions } from '../../../extension/runFileChecks.js';

/** The editor's open documents, who listens to them, and the Problems view. */
const editor = vi.hoisted(() => ({
  opened: [] as ((d: unknown) => void)[],
  problems: new Map<string, readonly { readonly message: string }[]>(),
}));
vi.mock('vscode', () => {
  const none = () => ({ dispose: () => undefined });
  return {
    commands: { executeCommand: () => Promise.resolve() },
    window: { onDidChangeActiveTextEditor: none },
    workspace: {
      textDocuments: [],
      onDidSaveTextDocument: none,
      onDidOpenTextDocument: (l: (d: unknown) => void) => {
        editor.opened.push(l);
        return none();
      },
      onDidCloseTextDocument: none,
    },
    languages: {
      createDiagnosticCollection: () => ({
        set: (uri: object, found: readonly { readonly message: string }[]) => editor.problems.set(String(uri), found),
        delete: (uri: object) => editor.problems.delete(String(uri)),
        dispose: () => undefined,
      }),
    },
    DiagnosticSeverity: { Error: 0 },
    Diagnostic: class {
      readonly range: unknown;
      readonly message: string;
      constructor(range: unknown, message: string) {
        this.range = range;
        this.message = message;
      }
    },
  };
});
const { RunFileChecks } = await import('../../../extension/runFileChecks.js');

const document = (uri: string) => ({
  uri: { scheme: uri.split(':')[0], path: '/w/dart-run.json', fsPath: '/w/dart-run.json', toString: () => uri },
  languageId: 'json',
  isClosed: false,
  lineCount: 1,
  getText: () => '{}',
  lineAt: () => ({ range: 'the line' }),
});
let asked: string[], answer: () => void;
const checks = (): InstanceType<typeof RunFileChecks> =>
  new RunFileChecks({
    runtime: {
      state: 'ready',
      onState: () => () => undefined,
      request: (_: unknown, p: { readonly file: string }) => {
        asked.push(p.file);
        return new Promise((r) => {
          answer = () => r({ problems: [{ message: 'That is no number.', line: 1 }] });
        });
      },
    },
    state: { get: () => undefined, update: () => undefined },
    failed: (e: unknown) => {
      throw e;
    },
  } as unknown as RunFileOptions);
beforeEach(() => {
  asked = [];
  editor.opened = [];
  editor.problems.clear();
});

it('a run file is checked when it is opened, and nothing that is only like one: a version of git, a side of a comparison', async () => {
  checks();
  for (const uri of [
    'file:/w/dart-run.json',
    'untitled:dart-run.json',
    'git:/w/dart-run.json',
    'diff:/w/dart-run.json',
  ])
    for (const l of editor.opened) l(document(uri));
  expect(asked).toHaveLength(2);
  answer();
  await expect.poll(() => [...editor.problems.keys()]).toEqual(['untitled:dart-run.json']);
});

it('one that was closed while it was checked leaves no problems behind', async () => {
  const d = document('file:/w/dart-run.json'),
    found = checks().check(d as never);
  d.isClosed = true;
  answer();
  expect(await found).toBe(1);
  expect(editor.problems.size).toBe(0);
});
