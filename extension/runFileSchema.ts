/** The schema of run files under an address that a run file can name: `"$schema": "dart-studio:/run.schema.json"`. */
import { EventEmitter, FileSystemError, FileType, Uri, workspace, type FileSystemProvider } from 'vscode';
import type { Ends } from './dispose.js';

export const schemaScheme = 'dart-studio';

/** Reads from the extension's own folder; nothing can be written. */
export function serveSchema(extension: Uri): Ends {
  const file = Uri.joinPath(extension, 'media', 'run.schema.json'),
    refuse = (uri: Uri): never => {
      throw FileSystemError.NoPermissions(uri);
    },
    known = (uri: Uri): Uri => {
      if (uri.path !== '/run.schema.json') throw FileSystemError.FileNotFound(uri);
      return file;
    };
  const provider: FileSystemProvider = {
    onDidChangeFile: new EventEmitter<never>().event,
    watch: () => ({ dispose: () => undefined }),
    stat: async (uri) => ({ ...(await workspace.fs.stat(known(uri))), type: FileType.File }),
    readFile: (uri) => workspace.fs.readFile(known(uri)),
    readDirectory: () => [],
    createDirectory: refuse,
    writeFile: refuse,
    delete: refuse,
    rename: refuse,
  };
  return workspace.registerFileSystemProvider(schemaScheme, provider, { isReadonly: true });
}
