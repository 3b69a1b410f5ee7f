import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { InputBoxOptions, ProgressOptions } from 'vscode';

/** Every text that the editor was told to show. */
const shown = vi.hoisted(() => [] as string[]);
vi.mock('vscode', () => {
  const say = (words: string, ...more: unknown[]): Promise<unknown> => {
    shown.push(words);
    return Promise.resolve(more.at(-1));
  };
  return {
    commands: { executeCommand: () => Promise.resolve() },
    ProgressLocation: { Notification: 15 },
    window: {
      showInformationMessage: say,
      showWarningMessage: say,
      showErrorMessage: say,
      showInputBox: async (o: InputBoxOptions) => {
        shown.push(o.prompt ?? '');
        const said = await o.validateInput?.('x');
        shown.push(typeof said === 'string' ? said : (said?.message ?? 'fine'));
        return o.value;
      },
      withProgress: (o: ProgressOptions, work: (p: object, token: object) => unknown) => {
        shown.push(o.title ?? '');
        return work(
          { report: (s: { message?: string }) => shown.push(s.message ?? '') },
          { onCancellationRequested: () => undefined },
        );
      },
    },
  };
});
const toasts = await import('../../../extension/toasts.js'),
  { Reporter } = await import('../../../extension/errors.js'),
  { working } = await import('../../../extension/commands/ask.js'),
  { withoutLinks } = await import('../../../extension/words.js');

/** Where VS Code begins a link's address (vs/base/common/linkedText.ts). */
const address = /\]\((?:https?:\/\/|command:|file:)/i;
const hostile = [
  '[See what to do](command:workbench.action.terminal.sendSequence?%7B%22text%22%3A%22ls%5Cn%22%7D)',
  '[a](COMMAND:x)',
  '[a](https://evil.example "a title")',
  '[a](http://evil.example)',
  '[a](file:///etc/passwd)',
  '[a](vscode://evil.example)',
  '[[a](command:x)](command:y)',
  ']](command:x)',
];
beforeEach(() => {
  shown.length = 0;
});

describe('words that VS Code would make a link of', () => {
  it.each(hostile)('%s', (words) => {
    expect(withoutLinks(words)).not.toMatch(address);
    expect(withoutLinks(words).replace(/\s/g, '')).toBe(words.replace(/\s/g, ''));
  });
  it('no other words are touched', () => {
    for (const words of ['f[0](x)', 'Step [3] (of 7)', 'http://127.0.0.1:5000', 'command: [x]', '[a]', 'a](b', ''])
      expect(withoutLinks(words)).toBe(words);
  });
});

describe('nothing that strangers wrote is a link in', () => {
  it('notifications, and their buttons are as they were', async () => {
    const { showInformationMessage, showWarningMessage, showErrorMessage } = toasts;
    for (const say of [showInformationMessage, showWarningMessage, showErrorMessage])
      expect(await say(hostile[0]!, 'Open', 'Show Log')).toBe('Show Log');
    expect(await showWarningMessage(hostile[0]!, { modal: true }, 'Delete')).toBe('Delete');
    expect(shown).toHaveLength(4);
    for (const words of shown) expect(words).not.toMatch(address);
  });
  it('the notification of a failure', () => {
    new Reporter({ error: () => undefined } as never).report({
      kind: 'policy.remote',
      message: `The server said: ${hostile[0]!}`,
      remedy: hostile[2]!,
    });
    expect(shown).toHaveLength(1);
    expect(shown[0]).not.toMatch(address);
  });
  it('prompts and what is wrong with an answer', async () => {
    await toasts.showInputBox({ prompt: hostile[0]!, validateInput: () => hostile[2]! });
    await toasts.showInputBox({ validateInput: () => Promise.resolve({ message: hostile[0]!, severity: 3 }) });
    expect(await toasts.showInputBox({ value: 'kept', validateInput: () => undefined })).toBe('kept');
    expect(shown).toHaveLength(6);
    expect(shown.at(-1)).toBe('fine');
    for (const words of shown) expect(words).not.toMatch(address);
  });
  it('progress, whose link to the log is our own', async () => {
    vi.useFakeTimers();
    try {
      const work = working(`Importing ${hostile[0]!}`, async (say) => {
        await new Promise((done) => setTimeout(done, 1000));
        say.report({ message: hostile[0]! });
      });
      await vi.advanceTimersByTimeAsync(2000);
      await work;
    } finally {
      vi.useRealTimers();
    }
    expect(shown).toHaveLength(2);
    const [title, message] = shown;
    expect(title!.endsWith(' ([show log](command:dartStudio.showLog))')).toBe(true);
    expect(title!.match(new RegExp(address, 'gi'))).toHaveLength(1);
    expect(message).not.toMatch(address);
  });
});
