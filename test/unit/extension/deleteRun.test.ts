import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { ListedRun } from '../../../extension/model/savedRuns.js';
import type { StudioContext } from '../../../extension/studioContext.js';

/** What the editor asked and deleted, and what a person answers to its questions, in turn. */
const editor = vi.hoisted(() => ({
  asked: [] as { readonly words: string; readonly buttons: readonly string[] }[],
  answers: [] as (string | undefined)[],
  deleted: [] as { readonly path: string; readonly recursive: boolean; readonly useTrash: boolean }[],
  hasTrash: true,
}));
vi.mock('vscode', () => ({
  Uri: { file: (path: string) => ({ path, fsPath: path }) },
  window: {
    showWarningMessage: (words: string, o: unknown, ...buttons: string[]) => {
      editor.asked.push({ words, buttons: typeof o === 'string' ? [o, ...buttons] : buttons });
      return Promise.resolve(editor.answers.shift());
    },
  },
  workspace: {
    fs: {
      delete: ({ path }: { path: string }, o: { recursive: boolean; useTrash: boolean }) => {
        editor.deleted.push({ path, ...o });
        return o.useTrash && !editor.hasTrash ? Promise.reject(new Error('no trash')) : Promise.resolve();
      },
    },
  },
}));
const { runLabelCommands } = await import('../../../extension/commands/runLabels.js'),
  { commands } = await import('../../../extension/ids.js');

const run = '/w/runs/tiny';
let dropped: string[] = [];
const studio = (state: ListedRun['state'] = 'finished'): StudioContext =>
  ({
    requireTrust: () => undefined,
    dropRoot: (r: string) => {
      dropped.push(r);
      return Promise.resolve();
    },
    model: { loading: Promise.resolve(), runs: [{ run, name: 'tiny', state }], reload: () => Promise.resolve() },
  }) as unknown as StudioContext;
const remove = (s: StudioContext): Promise<void> => Promise.resolve(runLabelCommands(s)[commands.deleteRun].run(run));

beforeEach(() => Object.assign(editor, { asked: [], answers: [], deleted: [], hasTrash: true }) && (dropped = []));

describe('Delete Run', () => {
  it('asks for the trash, and moves the folder there', async () => {
    editor.answers = ['Move to Trash'];
    await remove(studio());
    expect(editor.asked).toEqual([{ words: 'Delete the run tiny?', buttons: ['Move to Trash'] }]);
    expect(editor.deleted).toEqual([{ path: run, recursive: true, useTrash: true }]);
    expect(dropped).toEqual([run]);
  });
  it('deletes nothing when the question is dismissed', async () => {
    editor.answers = [undefined];
    await remove(studio());
    expect(editor.deleted).toEqual([]);
  });
  it('where there is no trash it asks once more before it deletes for good', async () => {
    editor.hasTrash = false;
    editor.answers = ['Move to Trash', 'Delete Permanently'];
    await remove(studio());
    expect(editor.asked.map((a) => a.buttons)).toEqual([['Move to Trash'], ['Delete Permanently']]);
    expect(editor.deleted.map((d) => d.useTrash)).toEqual([true, false]);
    Object.assign(editor, { deleted: [], answers: ['Move to Trash', undefined] });
    await remove(studio());
    expect(editor.deleted.map((d) => d.useTrash)).toEqual([true]);
  });
  it('refuses a run that is under way', async () => {
    await remove(studio('running'));
    expect(editor.asked).toEqual([{ words: 'tiny is active. Stop it first.', buttons: [] }]);
    expect(editor.deleted).toEqual([]);
  });
});
