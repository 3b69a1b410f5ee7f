import { beforeEach, expect, it, vi } from 'vitest';
import type { Uri } from 'vscode';
import type { Content } from '../../../extension/editors/trajectoryDocument.js';

const File = 1,
  Directory = 2,
  Link = 64;
/** The one file of the editor's file system, and how often it was read. */
const disk = vi.hoisted(() => ({ type: 1, size: 0, bytes: new Uint8Array(), reads: 0 }));
vi.mock('vscode', () => ({
  EventEmitter: class {
    readonly event = (): void => undefined;
    dispose(): void {}
  },
  FileSystemError: class extends Error {},
  FileType: { Unknown: 0, File: 1, Directory: 2, SymbolicLink: 64 },
  RelativePattern: class {},
  Uri: { joinPath: (u: { path: string }, ...more: string[]) => ({ ...u, path: [u.path, ...more].join('/') }) },
  workspace: {
    createFileSystemWatcher: () => ({
      onDidChange: () => ({ dispose: () => undefined }),
      onDidCreate: () => ({ dispose: () => undefined }),
      dispose: () => undefined,
    }),
    fs: {
      stat: () => Promise.resolve({ type: disk.type, size: disk.size, ctime: 0, mtime: 0 }),
      readFile: () => {
        disk.reads += 1;
        return Promise.resolve(disk.bytes);
      },
    },
  },
}));
const { TrajectoryDocument } = await import('../../../extension/editors/trajectoryDocument.js');

const uri = {
  scheme: 'file',
  path: '/work/demo.traj.jsonl',
  with: (o: object) => ({ ...uri, ...o }),
} as unknown as Uri;
async function opened(): Promise<Content> {
  const d = await TrajectoryDocument.open(uri, () => 1000);
  d.dispose();
  return d.content;
}
beforeEach(() => {
  Object.assign(disk, { type: File, size: 0, bytes: new Uint8Array(), reads: 0 });
});

it.each([
  ['a pipe or a device', 0],
  ['a link to one', Link],
  ['a folder', Directory],
  ['a link to a folder', Directory | Link],
])('%s is never read', async (_what, type) => {
  disk.type = type;
  expect(await opened()).toEqual({ kind: 'special' });
  expect(disk.reads).toBe(0);
});
it.each([
  ['a file', File],
  ['a link to one', File | Link],
])('%s is read', async (_what, type) => {
  Object.assign(disk, { type, size: 9, bytes: new TextEncoder().encode('no record') });
  expect(await opened()).toMatchObject({ kind: 'unreadable', why: expect.stringContaining('line 1') as string });
  expect(disk.reads).toBe(1);
});
it('one that is larger than it said is too large', async () => {
  disk.size = 2000;
  expect(await opened()).toEqual({ kind: 'tooLarge', bytes: 2000 });
  expect(disk.reads).toBe(0);
  Object.assign(disk, { size: 0, bytes: new Uint8Array(1001) });
  expect(await opened()).toEqual({ kind: 'tooLarge', bytes: 1001 });
});
