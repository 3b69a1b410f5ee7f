/**
 * Toasts. VS Code makes a link of `[words](command:…)` in them, which runs that command: words of a model server, a task
 * file or a run's folder must not get there as they are, so everything goes through here.
 */
import { window } from 'vscode';

type Show = typeof window.showErrorMessage;

/** The same words, of which VS Code makes no link: it needs `](` for one. */
export const withoutLinks = (words: string): string => words.replace(/\]\(/g, '] (');

const showing =
  (how: 'showErrorMessage' | 'showWarningMessage' | 'showInformationMessage') =>
  (words: string, ...rest: unknown[]): unknown =>
    (window[how] as (words: string, ...rest: unknown[]) => unknown)(withoutLinks(words), ...rest);

export const toast = {
  error: showing('showErrorMessage') as Show,
  warn: showing('showWarningMessage') as Show,
  tell: showing('showInformationMessage') as Show,
};
