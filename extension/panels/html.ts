/**
 * The page that a webview starts from: one script with the modules it imports, three style sheets, and a content policy that lets nothing else in.
 */
import { randomBytes } from 'node:crypto';
import type { PageKind } from '../../webview/protocol.js';

export interface PageSources {
  readonly cspSource: string;
  readonly script: string;
  readonly styles: readonly string[];
}

/** 192 random bits; a nonce that can be guessed is none. */
export const newNonce = (): string => randomBytes(24).toString('base64url');
export const escapeHtml = (s: string): string => s.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
/** JSON that may stand inside a script element or an attribute of a page: no `<`, no line separators. */
export const jsonInHtml = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** The page reaches the extension host by messages alone: `connect-src 'none'`, no frames, no remote anything. */
export function contentPolicy(cspSource: string, nonce: string): string {
  return [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${cspSource} 'nonce-${nonce}'`,
    `font-src ${cspSource}`,
    `img-src ${cspSource} blob: data:`,
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
}

/** The reaction of a page whose script does not come, from a service worker that VS Code restarts, say. */
export interface Lost {
  /** ms after which a script that has not started counts as lost; one that cannot be loaded does at once. */
  readonly patienceMs: number;
  /** Shown then; without them the host is told, which builds the page anew. */
  readonly words?: string | undefined;
}
/** Runs before everything else. The page's script says that it has started (webview/ui/host.ts). */
const guard = (o: Lost): string => `{
const page = document.documentElement;
let told = false;
const lost = () => {
  if (told || 'started' in page.dataset) return;
  told = true;
  ${
    o.words === undefined
      ? "acquireVsCodeApi().postMessage({ type: 'lost', boot: 'none' });"
      : `document.getElementById('lost').textContent = ${jsonInHtml(o.words)};`
  }
};
addEventListener('error', (e) => { if (e.target instanceof HTMLScriptElement) lost(); }, true);
setTimeout(lost, ${o.patienceMs});
}`;

/**
 * `#app` is the page's to fill, landmarks included. `data-vscode-context` turns VS Code's own Cut / Copy / Paste off,
 * which do nothing on pictures and charts; the page sets its own on the elements that have a menu. Translations are
 * data in the page, not a message: the script finds them when it loads, before it draws anything.
 */
export function pageHtml(o: {
  readonly kind: PageKind;
  readonly title: string;
  readonly lang: string;
  /** Translations by their English; none: the page is in English. */
  readonly words?: Readonly<Record<string, unknown>> | undefined;
  readonly sources: PageSources;
  readonly nonce: string;
  readonly lost: Lost;
}): string {
  const styles = o.sources.styles
    .map((s) => `<link rel="stylesheet" nonce="${o.nonce}" href="${escapeHtml(s)}">`)
    .join('\n');
  const words =
    o.words && Object.keys(o.words).length > 0
      ? `<script type="application/json" id="ds-words">${jsonInHtml(o.words)}</script>\n`
      : '';
  return `<!DOCTYPE html>
<html lang="${escapeHtml(o.lang)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(contentPolicy(o.sources.cspSource, o.nonce))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(o.title)}</title>
<script nonce="${o.nonce}">${guard(o.lost)}</script>
${styles}
</head>
<body data-page="${o.kind}" data-vscode-context="${escapeHtml(jsonInHtml({ preventDefaultContextMenuItems: true }))}">
<div id="app"><p id="lost" role="alert"></p></div>
${words}<script type="module" nonce="${o.nonce}" src="${escapeHtml(o.sources.script)}"></script>
</body>
</html>`;
}
