/** Run folders as training leaves them, for flows that look at finished runs; each is made in a second. */
import { mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RunReader } from '../../../runtime/data/store/runStore.js';
import { endOf, summaryOf } from '../../../runtime/queries/overview.js';
import { leaveSummary } from '../../../runtime/service/summaryFile.js';
import { trained, type TrainedRun } from './runEpisodes.js';
import { minute, RunWriter } from './runWriter.js';

/**
 * A whole run of 25 minutes: untrained evaluation, reading, demonstrations, warm start, ten groups of which four are
 * trained, ten minutes in which nobody worked on it, and a last evaluation that says less than the newest rollouts do.
 * Six desktops did the work of two: those that failed were replaced.
 */
export async function writeTrainedRun(dir: string, o: TrainedRun): Promise<void> {
  await mkdir(dir, { recursive: true });
  const w = new RunWriter(o);
  await w.open(dir, false);
  await w.frames();
  w.at(0.1);
  w.say({ type: 'metrics', source: 'run', values: { elapsedMs: 0 } });
  w.evaluation(0, 'untrained', { formOne: 0, pressButton: 2 });
  w.say({ type: 'checkpoint', version: 0, dir: 'checkpoints/v000000' });
  w.at(2);
  w.say({ type: 'metrics', source: 'reading', version: 0, values: { loss: 0.9, ms: minute, screens: 40, steps: 50 } });
  for (let i = 0; i < 2; i++) w.demonstration(2.2 + i / 10, i);
  w.at(4);
  w.say({ type: 'metrics', source: 'warm-start', version: 1, values: { loss: 0.5, ms: minute } });
  w.spans('trainer', 'trainer', 3, [['imitate', minute]]);
  for (let g = 0; g < 5; g++) w.group(g, 4.5 + g);
  await w.close(undefined);
  // The process died; ten minutes later another one went on.
  w.at(20);
  await w.open(dir, true);
  for (let g = 5; g < 10; g++) w.group(g, 15.5 + g);
  w.at(25);
  w.evaluation(trained.updates + 1, 'final', {
    formOne: o.formOne ?? trained.formOne.successes,
    pressButton: trained.pressButton.successes,
  });
  w.say({ type: 'metrics', source: 'run', version: trained.updates + 1, values: { elapsedMs: 15 * minute } });
  w.at(25.5);
  await w.close('budget');
  // Where its weights would be: without any it could neither be resumed nor evaluated.
  const checkpoint = join(dir, 'checkpoints', 'v000000');
  await mkdir(checkpoint, { recursive: true });
  await writeFile(join(checkpoint, 'weights.f32'), new Float32Array(trained.parameters));
  await leaveWhatTheRuntimeLeaves(dir);
}

/** `summary.json`, as the runtime leaves it when a run is over. */
async function leaveWhatTheRuntimeLeaves(dir: string): Promise<void> {
  const reader = await RunReader.open(dir, { index: 'local' });
  try {
    await leaveSummary(dir, { ...(await summaryOf(reader)), ...(await endOf(reader)) });
  } finally {
    await reader.close();
  }
}

/** Overwrites bytes in the middle of a run's journal, as a failing disk does; its index knows nothing of it. */
export async function damageJournal(dir: string, bytes: number): Promise<void> {
  const [segment] = (await readdir(join(dir, 'journal'))).sort(),
    f = await open(join(dir, 'journal', segment!), 'r+');
  try {
    const { size: length } = await f.stat();
    if (length < 4 * bytes) throw new Error(`a journal of ${length} bytes is too small to damage ${bytes} of it`);
    await f.write(Buffer.alloc(bytes, 7), 0, bytes, Math.floor(length / 2));
  } finally {
    await f.close();
  }
}
/** A folder whose run.json was cut off. */
export async function writeBrokenRun(dir: string): Promise<void> {
  await mkdir(join(dir, 'journal'), { recursive: true });
  await writeFile(join(dir, 'run.json'), '{ "id": ');
}
