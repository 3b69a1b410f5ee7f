import { readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import type { StudioContext } from '../../../extension/studioContext.js';
import { scratch } from '../../helpers/files/hostile.js';

vi.mock('vscode', () => ({}));
const { runLabelCommands } = await import('../../../extension/commands/runLabels.js'),
  { commands } = await import('../../../extension/ids.js');

it('what people call a run is written through no link of its folder, and read through none', () =>
  scratch(async (run) => {
    const file = join(run, 'mine'),
      label = join(run, 'label.json');
    await writeFile(file, '{"name":"mine"}');
    await symlink(file, label);
    await symlink(file, `${label}.${process.pid}.tmp`);
    const s = {
      requireTrust: () => undefined,
      model: { loading: Promise.resolve(), runs: [{ run, name: 'a', state: 'finished' }], reload: () => undefined },
    } as unknown as StudioContext;
    await runLabelCommands(s)[commands.pinRun].run(run);
    expect(JSON.parse(await readFile(label, 'utf8'))).toEqual({ pinned: true });
    expect(await readFile(file, 'utf8')).toBe('{"name":"mine"}');
  }));
