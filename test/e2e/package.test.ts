import { readFileSync } from 'node:fs';
import { unzipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import { rig } from '../helpers/workbench/rig.js';

/** The VSIX the other tests install, as scripts/package.mjs made it for this machine. */
const { vsix, vsixProblems, missing } = rig();
if (!vsix) console.warn(`skipped: the VSIX (${missing['vsix'] ?? missing['tools'] ?? 'missing'})`);

describe.skipIf(!vsix)('the VSIX', () => {
  it('holds exactly what is listed in test/fixtures/vsix-files.txt, within its budget', () => {
    expect(vsixProblems).toEqual([]);
  });

  it('starts nothing by itself, needs nothing that is not in it, and names no source', () => {
    const files = unzipSync(readFileSync(vsix!), {
        filter: (f) =>
          /^extension\/(package\.json|dist\/[^/]+\.c?js|dist\/webview\/.*\.js|THIRD_PARTY_NOTICES\.txt)$/.test(f.name),
      }),
      text = (f: string): string => Buffer.from(files[`extension/${f}`]!).toString();
    const manifest = JSON.parse(text('package.json')) as {
      main: string;
      activationEvents: string[];
      scripts?: unknown;
      dependencies?: unknown;
    };
    // Panels that are restored, the address of the run file's schema when a file names it, and links that are opened.
    expect(manifest.activationEvents.filter((e) => !e.startsWith('onWebviewPanel:')).sort()).toEqual([
      'onFileSystem:dart-studio',
      'onUri',
    ]);
    expect(manifest).not.toHaveProperty('scripts');
    expect(manifest).not.toHaveProperty('dependencies');
    expect(Object.keys(files)).toContain(`extension/${manifest.main.replace(/^\.\//, '')}`);
    for (const f of Object.keys(files))
      expect(Buffer.from(files[f]!).toString().includes('sourceMappingURL=') && !f.endsWith('.txt'), f).toBe(false);
    for (const name of ['onnxruntime-node', 'ws ', 'vscode-jsonrpc', 'uplot', 'sql.js'])
      expect(text('THIRD_PARTY_NOTICES.txt').toLowerCase()).toContain(name);
  });
});
