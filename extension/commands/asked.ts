/** Questions in a quick pick. */
import type { QuickPick, QuickPickItem } from 'vscode';

/** A question dismissed sooner than this after its rows were drawn cannot have been read. */
const unreadMs = 400;
/**
 * The answer to a question, undefined when it was dismissed; `begin` is given what answers it. VS Code gives a page its
 * focus back when the palette or another question closes, now and then after the next question has opened, and that
 * dismisses it: then it is shown once more.
 */
export function asked<T, I extends QuickPickItem = QuickPickItem>(
  pick: QuickPick<I>,
  begin: (answer: (value: T | Promise<never>) => void) => void,
  now = (): number => performance.now(),
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const { selectedItems } = pick;
    let over = false,
      shownAt: number | undefined = now(),
      drawn = false;
    begin((value) => {
      over = true;
      resolve(value);
      pick.hide();
    });
    // The window makes a row active when it draws them, which on a busy machine is long after the question was shown.
    pick.onDidChangeActive(() => {
      if (drawn || shownAt === undefined) return;
      drawn = true;
      shownAt = now();
    });
    pick.onDidHide(() => {
      const unread = !over && shownAt !== undefined && now() - shownAt < unreadMs;
      shownAt = undefined;
      if (unread) {
        pick.show();
        // A hidden quick pick has lost its rows.
        pick.items = [...pick.items];
        if (pick.canSelectMany) pick.selectedItems = selectedItems;
        return;
      }
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
  });
}
