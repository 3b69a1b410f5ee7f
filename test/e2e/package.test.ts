import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
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

  it('has what OSWorld tasks are judged with: its runtime, unpacked alone, can run them', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'dart-vsix-'));
    try {
      for (const [name, data] of Object.entries(unzipSync(readFileSync(vsix!)))) {
        if (!name.startsWith('extension/dist/') || name.endsWith('/')) continue;
        mkdirSync(dirname(join(dir, name)), { recursive: true });
        writeFileSync(join(dir, name), data);
      }
      mkdirSync(join(dir, 'tasks/examples/os'), { recursive: true });
      writeFileSync(
        join(dir, 'tasks/examples/os/one.json'),
        JSON.stringify({
          id: 'one',
          snapshot: 'os',
          instruction: 'Do it.',
          source: '',
          config: [],
          related_apps: ['os'],
          evaluator: {
            func: 'exact_match',
            result: { type: 'vm_command_line', command: ['true'] },
            expected: { type: 'rule', rules: { expected: '' } },
          },
        }),
      );
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [join(dir, 'extension/dist/runtime.js'), 'tasks', 'check', join(dir, 'tasks'), '--image', 'osworld'],
        { cwd: dir },
      );
      expect(stdout).toMatch(/^one +runnable/m);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });
});
