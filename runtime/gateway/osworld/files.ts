import { StudioError, messageOf } from '../../domain/index.js';
import { desktopPath, type TaskContext } from '../../tasks/context.js';
import { listDirectory } from '../../tasks/getters/system.js';
import { download as fromAssets, open } from '../../tasks/setup/files.js';
import { jsonReply, textReply, type Reply, type Request } from '../http.js';
import { BadRequest, downloadBody, field, formBody, jsonBody, pathBody } from './body.js';
import { isLost } from './context.js';

/** POST /setup/upload: a multipart form with file_path and file_data. */
export async function upload(ctx: TaskContext, r: Request): Promise<Reply> {
  const form = await formBody(r),
    path = desktopPath(field(form, 'file_path')),
    data = form.get('file_data');
  if (data === null || typeof data === 'string') throw new BadRequest('file_data is missing.');
  const bytes = Buffer.from(await data.arrayBuffer());
  await ctx.desktop.writeFile(path, bytes);
  return textReply(`File Uploaded: ${bytes.length} bytes`);
}

/** POST /file: a form with file_path. */
export async function download(ctx: TaskContext, r: Request): Promise<Reply> {
  const path = desktopPath(field(await formBody(r), 'file_path'));
  try {
    return {
      status: 200,
      type: 'application/octet-stream',
      body: await ctx.desktop.readFile(path),
    };
  } catch (e) {
    if (isLost(e)) throw e;
    return jsonReply({ error: 'File not found' }, 404);
  }
}

/** POST /setup/download_file: from the assets that were given. A desktop has no network, and nothing is fetched for it. */
export async function fetchFile(ctx: TaskContext, r: Request): Promise<Reply> {
  const file = jsonBody(r, downloadBody);
  try {
    await fromAssets(ctx, { files: [file] });
  } catch (e) {
    if (!(e instanceof StudioError && e.kind === 'task.unsupported')) throw e;
    const why =
        ctx.assets.dir === undefined
          ? 'no assets were given to this server'
          : ctx.assets.has(file.url)
            ? 'what this server has of it is too large, or not what its manifest says'
            : 'it is not among the assets',
      message = `${file.url} cannot be downloaded: these desktops have no network, and ${why}. Send it with /setup/upload.`;
    return jsonReply({ status: 'error', message }, 500);
  }
  return textReply('File downloaded successfully');
}

/** POST /list_directory. */
export async function directory(ctx: TaskContext, r: Request): Promise<Reply> {
  const tree = await listDirectory(ctx, jsonBody(r, pathBody));
  return tree === null
    ? jsonReply({ status: 'error', message: 'There is no such directory.' }, 404)
    : jsonReply({ directory_tree: tree });
}

/** POST /setup/open_file: opens it with the desktop's application and waits for its window. */
export async function openFile(ctx: TaskContext, r: Request): Promise<Reply> {
  const { path } = jsonBody(r, pathBody);
  try {
    await open(ctx, { path });
  } catch (e) {
    if (isLost(e)) throw e;
    const message = messageOf(e);
    return jsonReply({ status: 'error', message }, /^there is no file/.test(message) ? 404 : 500);
  }
  return textReply('File opened and window activated successfully');
}
