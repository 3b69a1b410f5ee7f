/**
 * Colours of canvases, read from VS Code's variables; canvases do not follow a theme by themselves, so a change is
 * announced.
 */

import type { Hue } from './chartSpec.js';

export interface Theme {
  readonly foreground: string;
  readonly dim: string;
  readonly grid: string;
  readonly background: string;
  readonly focus: string;
  readonly font: string;
  readonly fontPx: number;
  readonly hues: Readonly<Record<Hue, string>>;
  /** High contrast or forced colours: strokes are wider, patterns stronger, nothing translucent. */
  readonly contrast: boolean;
}

const hueVariables: Readonly<Record<Hue, readonly string[]>> = {
  blue: ['--vscode-charts-blue', '--vscode-textLink-foreground'],
  green: ['--vscode-charts-green', '--vscode-testing-iconPassed'],
  red: ['--vscode-charts-red', '--vscode-errorForeground'],
  // Made of red and yellow below: VS Code's own is that of a search highlight now, two thirds transparent.
  orange: ['--vscode-editorWarning-foreground'],
  yellow: ['--vscode-charts-yellow', '--vscode-terminal-ansiYellow'],
  purple: ['--vscode-charts-purple', '--vscode-terminal-ansiMagenta'],
  plain: ['--vscode-charts-foreground', '--vscode-foreground'],
};

let known: Theme | undefined;
export function theme(): Theme {
  if (known) return known;
  const css = getComputedStyle(document.documentElement),
    body = getComputedStyle(document.body);
  const read = (names: readonly string[], fallback: string): string =>
    names.map((n) => css.getPropertyValue(n).trim()).find((v) => v !== '') ?? fallback;
  const fontPx = parseFloat(body.fontSize) || 13,
    font = body.fontFamily;
  if (matchMedia('(forced-colors: active)').matches) {
    const hues = Object.fromEntries(Object.keys(hueVariables).map((k) => [k, 'CanvasText'])) as Record<Hue, string>;
    return (known = {
      foreground: 'CanvasText',
      dim: 'CanvasText',
      grid: fade('CanvasText', 0.22),
      background: 'Canvas',
      focus: 'Highlight',
      font,
      fontPx,
      hues: { ...hues, blue: 'LinkText', purple: 'Highlight' },
      contrast: true,
    });
  }
  const foreground = read(['--vscode-foreground'], body.color),
    contrast =
      document.body.classList.contains('vscode-high-contrast') ||
      document.body.classList.contains('vscode-high-contrast-light');
  const hues = Object.fromEntries(
    Object.entries(hueVariables).map(([k, names]) => [k, read(names, foreground)]),
  ) as Record<Hue, string>;
  hues.orange = resolve(`color-mix(in srgb, ${hues.red} 50%, ${hues.yellow})`);
  const grid = resolve(`color-mix(in srgb, ${foreground} ${contrast ? 20 : 12}%, transparent)`);
  return (known = {
    foreground,
    dim: contrast ? foreground : read(['--vscode-descriptionForeground'], foreground),
    grid,
    background: read(['--vscode-editor-background'], body.backgroundColor),
    focus: read(['--vscode-focusBorder'], foreground),
    font,
    fontPx,
    hues,
    contrast,
  });
}
/** The same colour, more transparent. */
export const fade = (colour: string, share: number): string =>
  resolve(`color-mix(in srgb, ${colour} ${Math.round(share * 100)}%, transparent)`);

/** Canvases of older Chromium know no color-mix(): the style engine computes it. */
const resolved = new Map<string, string>();
let probe: HTMLElement | undefined;
function resolve(colour: string): string {
  const had = resolved.get(colour);
  if (had) return had;
  if (!probe) {
    probe = document.createElement('span');
    probe.hidden = true;
    probe.style.setProperty('forced-color-adjust', 'none');
    document.body.append(probe);
  }
  probe.style.color = colour;
  const out = getComputedStyle(probe).color;
  resolved.set(colour, out);
  return out;
}

/** Calls back after VS Code changed its theme, font or zoom, or the system its forced colours. Returns an end. */
export function onThemeChange(changed: () => void): () => void {
  let asked = 0;
  const ask = (): void => {
    if (!asked)
      asked = requestAnimationFrame(() => {
        asked = 0;
        known = undefined;
        resolved.clear();
        changed();
      });
  };
  const observer = new MutationObserver(ask);
  observer.observe(document.body, {
    attributes: true,
    attributeFilter: ['class', 'data-vscode-theme-id', 'data-vscode-theme-kind'],
  });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['style'] });
  const media = [matchMedia('(forced-colors: active)'), matchMedia(`(resolution: ${devicePixelRatio}dppx)`)];
  for (const m of media) m.addEventListener('change', ask);
  return () => {
    observer.disconnect();
    for (const m of media) m.removeEventListener('change', ask);
    cancelAnimationFrame(asked);
  };
}
