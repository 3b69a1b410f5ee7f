import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { deskSuite } from '../../../runtime/tasks/suites/desk/index.js';

/** Templates of version 0.1, on whichever side they are. */
const VERSION_0_1 = [
  'press-button press-grid press-order press-two press-three press-missing',
  'list-pick list-confirm list-scroll list-radio list-check-two list-open list-cancel list-missing',
  'entry-type entry-enter form-one form-two form-checks form-login form-choice scale-drag calendar-day wizard survey',
  'note-save note-replace note-append note-menu-save note-clear note-discard note-copy',
  'calc-copy calc-click calc-click-long',
  'file-rename file-delete file-drag file-copy file-move file-missing',
  'folder-new folder-open folder-empty folder-rename folder-sort',
  'cell-fill cell-two cell-formula cell-clear',
  'term-touch term-write term-exit term-which term-clean',
  'window-close window-minimize window-raise window-maximize window-move window-missing menu-start tray-start',
  'calc-to-note file-edit note-to-term',
].flatMap((names) => names.split(' '));

const page = readFileSync('runtime/tasks/README.md', 'utf8'),
  families = deskSuite().families.map((f) => ({ ...f, name: f.id.slice('desk/'.length) })),
  added = (split: 'train' | 'heldout'): string[] =>
    families
      .filter((f) => f.split === split && !VERSION_0_1.includes(f.name))
      .map((f) => f.name)
      .sort();

describe('templates of the desk suite', () => {
  it('are all listed that were added since version 0.1, on either side', () => {
    const [, list] = /\*\*Templates added since version 0\.1\*\*.*\n\n([\s\S]*?)\n\n/.exec(page)!,
      listed = (side: string): string[] =>
        list!
          .split('\n')
          .filter((l) => l.startsWith(`| ${side} |`))
          .flatMap((l) => [...l.split(' | ')[2]!.matchAll(/`([\w-]+)`/g)].map((m) => m[1]!))
          .sort();
    expect(VERSION_0_1.filter((name) => !families.some((f) => f.name === name))).toEqual([]);
    expect(listed('trained')).toEqual(added('train'));
    expect(listed('held out')).toEqual(added('heldout'));
  });
  it('are as many as pages say', () => {
    const many = (f: (x: (typeof families)[number]) => boolean): number => families.filter(f).length,
      trained = many((f) => f.split === 'train' && !f.infeasible),
      fresh = many((f) => f.fresh === true),
      heldOut = many((f) => f.split === 'heldout') - fresh;
    expect(page).toContain(
      `${families.length} templates over the applications of our image, each a family: ${trained} to train on, ${many((f) => f.infeasible)} that cannot be done, ${heldOut} held out, ${fresh} held out and [fresh]`,
    );
    expect(page).toContain(`all ${heldOut} of the split \`templates\` are version 0.1's`);
    expect(readFileSync('test/bench/README.md', 'utf8')).toContain(
      `Of the ${added('train').length} training templates that version 0.1 did not have`,
    );
  });
});
