import { lastOfEither } from '../../../extension/commands/either.js';
import { describe, expect, it } from 'vitest';
import type { QuickPick, QuickPickItem } from 'vscode';
import { asked } from '../../../extension/commands/asked.js';

/** A quick pick as VS Code has them: what is hidden loses its rows, and is told that it is. */
class Pick {
  selectedItems: readonly QuickPickItem[] = [];
  canSelectMany = false;
  shown = 0;
  disposed = false;
  rows: readonly QuickPickItem[] = [];
  #items: readonly QuickPickItem[] = [{ label: 'a' }, { label: 'b' }];
  #hidden: () => void = () => undefined;
  #active: () => void = () => undefined;
  get items(): readonly QuickPickItem[] {
    return this.#items;
  }
  set items(v: readonly QuickPickItem[]) {
    this.#items = this.rows = v;
  }
  onDidHide(f: () => void): void {
    this.#hidden = f;
  }
  onDidChangeActive(f: () => void): void {
    this.#active = f;
  }
  /** The window has drawn the rows, or another one is active. */
  activate(): void {
    this.#active();
  }
  show(): void {
    this.shown++;
    this.rows = this.shown === 1 ? this.#items : [];
  }
  hide(): void {
    this.#hidden();
  }
  dispose(): void {
    this.disposed = true;
  }
}
function ask(o: { readonly many?: boolean } = {}) {
  const pick = new Pick();
  let at = 1000,
    answer!: (v: string | Promise<never>) => void;
  pick.canSelectMany = o.many ?? false;
  if (o.many) pick.selectedItems = [pick.items[1]!];
  const result = asked<string>(
    pick as unknown as QuickPick<QuickPickItem>,
    (a) => {
      answer = a;
    },
    () => at,
  );
  return {
    pick,
    result,
    after: (ms: number) => {
      at += ms;
    },
    answer: (v: string | Promise<never>) => {
      answer(v);
    },
  };
}

describe('a question', () => {
  it('that was dismissed before anybody could read it is shown once more, with its rows', async () => {
    const { pick, result, after } = ask({ many: true });
    after(40);
    pick.selectedItems = [];
    pick.hide();
    expect([pick.shown, pick.rows.map((r) => r.label), pick.selectedItems.map((r) => r.label), pick.disposed]).toEqual([
      2,
      ['a', 'b'],
      ['b'],
      false,
    ]);
    after(10);
    pick.hide();
    expect([pick.shown, pick.disposed, await result]).toEqual([2, true, undefined]);
  });
  it('is read from when its rows are drawn, which may be late; moving in them begins nothing anew', async () => {
    const early = ask();
    early.after(900);
    early.pick.activate();
    early.after(40);
    early.pick.hide();
    expect([early.pick.shown, early.pick.disposed]).toEqual([2, false]);
    const { pick, result, after } = ask();
    pick.activate();
    after(900);
    pick.activate();
    after(40);
    pick.hide();
    expect([pick.shown, pick.disposed, await result]).toEqual([1, true, undefined]);
  });
  it('that was dismissed by a person is over', async () => {
    const { pick, result, after } = ask();
    after(900);
    pick.hide();
    expect([pick.shown, pick.disposed, await result]).toEqual([1, true, undefined]);
  });
  it('that is answered, however fast, is over', async () => {
    const { pick, result, answer } = ask();
    answer('yes');
    expect([pick.shown, pick.disposed, await result]).toEqual([1, true, 'yes']);
  });
  it('whose rows cannot be had fails with the reason', async () => {
    const { pick, result, answer } = ask();
    answer(Promise.reject(new Error('no tasks')));
    await expect(result).rejects.toThrow('no tasks');
    expect(pick.disposed).toBe(true);
  });
});

describe('of some choices only one can be ticked', () => {
  const either = (x: string): boolean => x === 'successes' || x === 'failures';
  it('the newer one replaces the older', () => {
    expect(lastOfEither(['successes', 'failures', 'reviewed'], ['successes', 'reviewed'], either)).toEqual([
      'failures',
      'reviewed',
    ]);
    expect(lastOfEither(['successes', 'failures'], ['failures'], either)).toEqual(['successes']);
    expect(lastOfEither(['reviewed', 'failures'], [], either)).toEqual(['reviewed', 'failures']);
  });
  it('ticking all at once leaves one of them', () => {
    expect(lastOfEither(['successes', 'failures', 'reviewed'], [], either)).toEqual(['failures', 'reviewed']);
  });
});
