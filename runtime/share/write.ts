import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { StudioError, messageOf, type FrameLink, type TrajectoryView } from '../domain/index.js';
import { orUndefined } from '../concurrency/failures.js';
import { PngFrameStore } from '../data/store/frames.js';
import { replaceFile } from '../files/replaceFile.js';
import type { ReadFrame } from './pictures.js';
import { runPage, type RunPageData } from './runPage.js';
import { trajectoryPage } from './trajectoryPage.js';

/** A page to write; `framesDir` is where its screens are. */
export type ShareJob = { readonly to: string; readonly framesDir: string } & (
  { readonly trajectory: TrajectoryView; readonly runName?: string | undefined } | { readonly run: RunPageData }
);
export interface Shared {
  readonly file: string;
  readonly bytes: number;
  /** Screens are so many times smaller than on the desktop. */
  readonly scale: number;
  /** Screens that are not in it. */
  readonly without: number;
}

/** Screens of a run folder; a hash that is none names no file. */
export const framesIn = (dir: string): ReadFrame => {
  const frames = new PngFrameStore(dir);
  return (f: FrameLink) => orUndefined(frames.read(f), 'a screen that is gone is shown as missing');
};

/** Makes the page and writes it: whole, or not at all. */
export async function writeShared(job: ShareJob): Promise<Shared> {
  const read = framesIn(job.framesDir),
    page =
      'run' in job
        ? await runPage(job.run, read)
        : await trajectoryPage(job.trajectory, {
            read,
            ...(job.runName === undefined ? {} : { runName: job.runName }),
          });
  try {
    await mkdir(dirname(job.to), { recursive: true });
    // It may lie in a run folder of somebody else: no link there is followed.
    await replaceFile(job.to, page.html);
  } catch (e) {
    throw new StudioError(
      'store.io',
      `The page cannot be written to ${job.to}: ${messageOf(e)}.`,
      'Choose another place, or free some space.',
      { cause: e },
    );
  }
  return { file: job.to, bytes: Buffer.byteLength(page.html), scale: page.scale, without: page.without };
}
