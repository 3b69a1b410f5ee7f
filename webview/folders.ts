/** Files below folders, by the names in their paths: what a page may show of them. Pure; pages and their host use it. */
import type { ResourceRoot } from './protocol.js';

/** A path of Windows may have either separator, and both at once where a page has put names behind a folder. */
const namesIn = (path: string): string[] => path.split(/[/\\]/);
/** Windows drops dots and spaces at the end of a name: `.. ` leads up as `..` does. */
const leadsUp = (name: string): boolean => /^\.[. ]*\.[. ]*$/.test(name);
/** VS Code writes a drive with a small letter, Node as whoever started it did. */
const sameName = (a: string, b: string): boolean =>
  a === b || (/^[a-z]:$/i.test(a) && a.toLowerCase() === b.toLowerCase());

/** The names that lead from a folder to a file below it; undefined for the folder itself and for any other path. */
export function namesBelow(folder: string, path: string): readonly string[] | undefined {
  const top = namesIn(folder),
    names = namesIn(path);
  while (top.length > 1 && top.at(-1) === '') top.pop();
  if (!top.every((name, i) => i < names.length && sameName(name, names[i]!))) return undefined;
  const below = names.slice(top.length).filter((name) => name !== '');
  return below.length === 0 || below.some(leadsUp) ? undefined : below;
}
/** URI of a file in one of the folders that a page may show. */
export function uriBelow(roots: readonly ResourceRoot[], path: string): string | undefined {
  for (const r of roots) {
    const names = namesBelow(r.path, path);
    if (names) return [r.uri.replace(/\/$/, ''), ...names.map(encodeURIComponent)].join('/');
  }
  return undefined;
}
