/** Open Sample Run: a small real run that comes with the extension, as any other run is shown. */
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Uri, workspace } from 'vscode';
import type { RunPath } from '../../runtime/protocol/types.js';
import { openSample as readSample } from '../model/sampleArchive.js';
import { sampleFolder } from '../model/roots.js';
import type { StudioContext } from '../studioContext.js';
import { showWarningMessage } from '../toasts.js';
import { t } from '../words.js';
import { working } from './ask.js';

/**
 * Unpacks the sample once, into the extension's own storage, and lists it from there. No desktop, no Docker and no
 * training; in Restricted Mode a runtime of its own reads it, which knows no other run.
 */
export async function openSample(s: StudioContext): Promise<void> {
  const archive = Uri.joinPath(s.extension.extensionUri, 'media', 'sample.br').fsPath;
  if (!existsSync(archive)) {
    void showWarningMessage(t('This build of DART Studio does not include the sample run.'));
    return;
  }
  const run = await working(t('Opening the sample run'), () => unpacked(archive, sampleFolder(s.storage)), {
    cancellable: false,
  });
  await s.addRoot(run);
  if (workspace.isTrusted) await s.ensureRuntime();
  else await s.readSample();
  await s.model.reload();
  s.model.select(run);
  s.panels.show({ kind: 'dashboard', run });
}
/** The run's folder; made when it is not there. */
async function unpacked(archive: string, into: string): Promise<RunPath> {
  const sample = await readSample(await readFile(archive)),
    dir = join(into, sample.run);
  if (existsSync(join(dir, 'run.json'))) return dir;
  await mkdir(into, { recursive: true });
  return sample.unpack(into);
}
