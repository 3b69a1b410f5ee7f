/** How the page names the folder of a document: its path with `/`, on every platform and file system. */
import { Uri } from 'vscode';

export const folderOf = (file: Uri): Uri => Uri.joinPath(file, '..');
/** `framesDir` was checked to be relative and below (protocol/trajectoryFile.ts). */
export const framesUnder = (folder: Uri, framesDir: string): string =>
  Uri.joinPath(folder, framesDir).path.replace(/\/$/, '');
