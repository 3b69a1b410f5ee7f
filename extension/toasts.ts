/**
 * Notifications, progress, prompts and validation outside pages. In them VS Code makes links of `[words](command:id)`,
 * and a click on one runs the command. They contain names, tasks and answers of servers: all of them go through here
 * (lint), where nothing of them becomes a link.
 */
import { window, type CancellationToken, type InputBoxOptions, type Progress, type ProgressOptions } from 'vscode';
import { withoutLinks } from './words.js';

type Toast = typeof window.showInformationMessage;
const toast = (kind: 'showInformationMessage' | 'showWarningMessage' | 'showErrorMessage'): Toast =>
  ((words: string, ...more: string[]) => window[kind](withoutLinks(words), ...more)) as Toast;

export const showInformationMessage = toast('showInformationMessage');
export const showWarningMessage = toast('showWarningMessage');
export const showErrorMessage = toast('showErrorMessage');

export function showInputBox({ prompt, validateInput, ...o }: InputBoxOptions): Thenable<string | undefined> {
  return window.showInputBox({
    ...o,
    ...(prompt === undefined ? {} : { prompt: withoutLinks(prompt) }),
    ...(validateInput === undefined
      ? {}
      : {
          validateInput: async (value: string) => {
            const said = await validateInput(value);
            return typeof said === 'string'
              ? withoutLinks(said)
              : said && { ...said, message: withoutLinks(said.message) };
          },
        }),
  });
}

export interface Said {
  message?: string;
  increment?: number;
}
/** `link`: markup of our own behind the title. */
export function withProgress<R>(
  { title, link = '', ...o }: ProgressOptions & { readonly link?: string },
  work: (say: Progress<Said>, token: CancellationToken) => Thenable<R>,
): Thenable<R> {
  return window.withProgress(
    { ...o, ...(title === undefined ? {} : { title: withoutLinks(title) + link }) },
    (p, token) =>
      work(
        {
          report: (s) => p.report({ ...s, ...(s.message === undefined ? {} : { message: withoutLinks(s.message) }) }),
        },
        token,
      ),
  );
}
