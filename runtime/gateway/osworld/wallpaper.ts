import { StudioError } from '../../domain/index.js';
import { answersOf } from '../../tasks/bridge/answers.js';
import { desktopPath, type TaskContext } from '../../tasks/context.js';
import { changeWallpaper } from '../../tasks/setup/chrome.js';
import { textReply, type Reply, type Request } from '../http.js';
import { jsonBody, pathBody } from './body.js';
import { failure } from './failure.js';

/** POST /setup/change_wallpaper: the picture that GNOME's settings name; the image `osworld` has them. */
export async function setWallpaper(ctx: TaskContext, r: Request): Promise<Reply> {
  const path = desktopPath(jsonBody(r, pathBody).path),
    there = await ctx.desktop.exec(['test', '-f', path], { timeoutMs: 10_000, signal: ctx.signal });
  if (there.code !== 0) return failure(`There is no file ${path}.`, 404);
  try {
    await changeWallpaper(ctx, { path });
  } catch (e) {
    if (e instanceof StudioError && e.kind === 'desktop.exec')
      return failure("This desktop's image has no settings of a wallpaper; the image osworld has.", 500);
    throw e;
  }
  return textReply('Wallpaper changed successfully');
}

/** POST /wallpaper: the picture itself. */
export async function wallpaper(ctx: TaskContext): Promise<Reply> {
  const picture = await answersOf(ctx)('wallpaper', {});
  return Buffer.isBuffer(picture)
    ? { status: 200, type: 'image/png', body: picture }
    : failure('This desktop has no wallpaper.', 404);
}
