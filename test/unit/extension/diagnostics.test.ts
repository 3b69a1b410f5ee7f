import { homedir } from 'node:os';
import { strFromU8, unzipSync } from 'fflate';
import { expect, it, vi } from 'vitest';
import type { StudioContext } from '../../../extension/studioContext.js';

/** The settings of the machine, and the file that was written. */
const editor = vi.hoisted(() => ({
  settings: {} as Record<string, unknown>,
  written: undefined as Uint8Array | undefined,
  said: [] as string[],
}));
vi.mock('vscode', () => {
  const uri = (fsPath: string) => ({ scheme: 'file', path: fsPath, fsPath });
  return {
    Uri: { file: uri, joinPath: (u: { fsPath: string }, ...names: string[]) => uri([u.fsPath, ...names].join('/')) },
    FileType: { File: 1 },
    env: { appName: 'Code', language: 'en' },
    version: '1.0.0',
    extensions: { all: [] },
    commands: {},
    window: {
      showSaveDialog: () => Promise.resolve(uri('/tmp/d.zip')),
      showInformationMessage: (words: string) => {
        editor.said.push(words);
        return Promise.resolve(undefined);
      },
    },
    workspace: {
      isTrusted: true,
      getConfiguration: () => ({
        ...editor.settings,
        get: (key: string, fallback: unknown) =>
          key.split('.').reduce<unknown>((x, k) => (x as Record<string, unknown> | undefined)?.[k], editor.settings) ??
          fallback,
      }),
      fs: {
        readDirectory: () => Promise.resolve([['log.txt', 1]]),
        readFile: () => Promise.resolve(new TextEncoder().encode('webhook: Failed to parse https://hooks.example/s3')),
        stat: () => Promise.reject(new Error('not there')),
        writeFile: (_to: unknown, bytes: Uint8Array) => {
          editor.written = bytes;
          return Promise.resolve();
        },
      },
    },
  };
});
const { helpCommands } = await import('../../../extension/commands/help.js'),
  { commands } = await import('../../../extension/ids.js');

it('diagnostics name neither the webhook nor the command for alerts, in the settings or in a log', async () => {
  editor.settings = {
    runsFolder: 'runs',
    docker: { host: 'tcp://10.0.0.2:2375' },
    alerts: { command: `${homedir()}/page-me`, webhook: 'https://hooks.example/s3', desktop: false },
  };
  const s = {
    extension: { logUri: { fsPath: '/logs' }, extension: { packageJSON: { version: '9.9.9' } } },
    client: { state: 'stopped' },
    model: { runs: [] },
    storage: '/s',
  } as unknown as StudioContext;
  await helpCommands(s)[commands.collectDiagnostics].run();
  const files = Object.fromEntries(Object.entries(unzipSync(editor.written!)).map(([n, b]) => [n, strFromU8(b)]));
  expect(editor.said[0]).toMatch(/^Saved d\.zip\. Secrets/);
  expect(JSON.parse(files['editor.json']!)).toMatchObject({
    settings: {
      runsFolder: 'runs',
      docker: { host: 'tcp://10.0.0.2:2375' },
      alerts: { command: 'set', webhook: 'set', desktop: false },
    },
  });
  expect(files['extension/log.txt']).toBe('webhook: Failed to parse [redacted]');
  for (const secret of ['hooks.example', 'page-me']) expect(Object.values(files).join('\n')).not.toContain(secret);
});
