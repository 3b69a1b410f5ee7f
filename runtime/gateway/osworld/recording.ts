import { jsonReply, type Reply } from '../http.js';
import { HOME, type TaskContext } from '../../tasks/context.js';
import { failure } from './failure.js';

const FILE = '/tmp/.dart-studio-recording.mp4';
/** How long the recorder may take to finish its file, ms. */
const FINISH_MS = 15_000;

/** A film of the screen, made by ffmpeg inside the desktop. */
export class Recording {
  #pid: number | undefined;

  /** POST /start_recording. */
  async start(ctx: TaskContext): Promise<Reply> {
    if (this.#pid !== undefined) return failure('Recording is already in progress.', 400);
    const { width, height } = ctx.desktop.screen,
      there = await ctx.desktop.exec(['/bin/sh', '-c', 'command -v ffmpeg'], { timeoutMs: 10_000, signal: ctx.signal });
    if (there.code !== 0) return failure("This desktop's image has no ffmpeg, so nothing can be recorded.", 500);
    this.#pid = await ctx.desktop.spawn(
      [
        '/bin/sh',
        '-c',
        `exec ffmpeg -y -f x11grab -draw_mouse 1 -s ${width}x${height} -i "$DISPLAY" -c:v libx264 -r 30 ${FILE}`,
      ],
      { cwd: HOME },
    );
    return jsonReply({ status: 'success', message: 'Started recording successfully.' });
  }

  /** POST /end_recording: the film. */
  async end(ctx: TaskContext): Promise<Reply> {
    const pid = this.#pid;
    if (pid === undefined) return failure('No recording in progress to stop.', 400);
    this.#pid = undefined;
    await ctx.desktop.exec(['/bin/sh', '-c', `kill -INT ${pid}; timeout 12 tail --pid=${pid} -f /dev/null`], {
      timeoutMs: FINISH_MS,
      signal: ctx.signal,
    });
    return { status: 200, type: 'video/mp4', body: await ctx.desktop.readFile(FILE) };
  }
}
