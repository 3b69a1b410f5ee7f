import { expect, it, vi } from 'vitest';

const shown: unknown[][] = [];
vi.mock('vscode', () => ({
  window: {
    showErrorMessage: (...a: unknown[]) => {
      shown.push(a);
      return Promise.resolve(a[1]);
    },
  },
}));
const { toast, withoutLinks } = await import('../../../extension/toasts.js');

/** What VS Code makes a link of in a notification (its linkedText.ts). */
const LINK = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)(?: (["'])(.+?)(\3))?\)/i;

it('what a server says is no link to a command', async () => {
  const said =
    'policy.remote: answered 400: [see what to do](command:workbench.action.terminal.sendSequence?%7B%22text%22%3A%22x%22%7D)';
  expect(LINK.test(said)).toBe(true);
  expect(await toast.error(said, 'Show Log')).toBe('Show Log');
  const [[words, button]] = shown as [[string, string]];
  expect(LINK.test(words)).toBe(false);
  expect(button).toBe('Show Log');
});

it.each(['[[a](b)](command:x "t")', '[a]](command:x)', '[a](command:x)](command:y)', '[a\n](https://x)'])(
  '%s is no link either',
  (words) => {
    expect(LINK.test(withoutLinks(words))).toBe(false);
  },
);
it('other words stay as they are', () => {
  expect(withoutLinks('Run [1] (a) ended: f(x)[0] = 2')).toBe('Run [1] (a) ended: f(x)[0] = 2');
});
