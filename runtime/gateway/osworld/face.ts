import type { Desktop } from '../../cluster/types.js';
import { messageOf, type Frame } from '../../domain/index.js';
import type { AssetStore } from '../../tasks/assets.js';
import type { TaskContext } from '../../tasks/context.js';
import { terminalText } from '../../tasks/getters/accessibility.js';
import { windowSize } from '../../tasks/getters/system.js';
import { activateWindow, closeWindow } from '../../tasks/setup/windows.js';
import { jsonReply, textReply, type Reply, type Request } from '../http.js';
import { accessibility } from './accessibility.js';
import { BadRequest, field, formBody, jsonBody, settleBody, windowBody } from './body.js';
import { Commands } from './commands.js';
import { contextOf, isLost } from './context.js';
import { directory, download, fetchFile, openFile, upload } from './files.js';
import { Recording } from './recording.js';
import { setWallpaper, wallpaper } from './wallpaper.js';

/** The calls of OSWorld's port 5000 to one desktop. */
export interface OsworldFace {
  handle(r: Request): Promise<Reply>;
  /** Programs performed without Python, and commands run as they are. */
  readonly counts: { readonly performed: number; readonly run: number };
}

type Route = (ctx: TaskContext, r: Request) => Promise<Reply>;

/**
 * OSWorld's in-VM server for a desktop of ours: the same routes, field names and status codes
 * (runtime/gateway/README.md). `picture` encodes a frame as PNG; `assets` are what it can download.
 */
export function osworldFace(
  desktop: Desktop,
  picture: (f: Frame) => Promise<Buffer>,
  assets?: AssetStore,
): OsworldFace {
  const commands = new Commands(desktop),
    routes = new Map<string, Route>(Object.entries(routesOf(commands, new Recording(), picture))),
    state: TaskContext['stateOf'] = new Map();
  return {
    counts: commands.counts,
    handle: async (r) => {
      const route = routes.get(`${r.method} ${r.path}`);
      if (!route) return jsonReply({ status: 'error', message: `There is no ${r.method} ${r.path}.` }, 404);
      try {
        return await route(contextOf(desktop, r.signal, state, assets), r);
      } catch (e) {
        if (e instanceof BadRequest) return jsonReply({ status: 'error', message: e.message }, 400);
        if (isLost(e)) throw e;
        return jsonReply({ status: 'error', message: messageOf(e) }, 500);
      }
    },
  };
}

function routesOf(
  commands: Commands,
  recording: Recording,
  picture: (f: Frame) => Promise<Buffer>,
): Readonly<Record<string, Route>> {
  const execute: Route = (ctx, r) => commands.execute(ctx, r),
    verified: Route = (ctx, r) => commands.executeVerified(ctx, r);
  return {
    'GET /screenshot': async (ctx) => {
      const frame = await ctx.desktop.observe(),
        body = await picture(frame);
      ctx.desktop.recycle?.(frame);
      return { status: 200, type: 'image/png', body };
    },
    'POST /screen_size': (ctx) =>
      Promise.resolve(jsonReply({ width: ctx.desktop.screen.width, height: ctx.desktop.screen.height })),
    'GET /platform': () => Promise.resolve(textReply('Linux')),
    'GET /cursor_position': async (ctx) => {
      const { x, y } = await commands.pointer(ctx);
      return jsonReply([x, y]);
    },
    'GET /accessibility': (ctx) => accessibility(ctx),
    'GET /terminal': async (ctx) => jsonReply({ output: await terminalText(ctx), status: 'success' }),
    'POST /execute': execute,
    'POST /setup/execute': execute,
    'POST /execute_with_verification': verified,
    'POST /setup/execute_with_verification': verified,
    'POST /setup/launch': (ctx, r) => commands.launch(ctx, r),
    'POST /run_python': (ctx, r) => commands.python(ctx, r),
    'POST /run_bash_script': (ctx, r) => commands.script(ctx, r),
    'POST /setup/upload': upload,
    'POST /setup/download_file': fetchFile,
    'POST /file': download,
    'POST /list_directory': directory,
    'POST /setup/open_file': openFile,
    'POST /setup/activate_window': async (ctx, r) => {
      await activateWindow(ctx, windowOf(r));
      return textReply('Window activated successfully');
    },
    'POST /setup/close_window': async (ctx, r) => {
      await closeWindow(ctx, windowOf(r));
      return textReply('Window closed successfully.');
    },
    'POST /setup/change_wallpaper': setWallpaper,
    'POST /wallpaper': wallpaper,
    'POST /window_size': async (ctx, r) => {
      const size = await windowSize(ctx, { app_class_name: field(await formBody(r), 'app_class_name') });
      return size === null ? jsonReply({ status: 'error', message: 'There is no such window.' }, 404) : jsonReply(size);
    },
    'POST /desktop_path': async (ctx) => {
      const r = await ctx.desktop.exec(['test', '-d', `${HOME_DESKTOP}`], { timeoutMs: 10_000, signal: ctx.signal });
      return r.code === 0
        ? jsonReply({ desktop_path: HOME_DESKTOP })
        : jsonReply({ status: 'error', message: 'Desktop path not found' }, 404);
    },
    // Ours alone: at rest as the desktop's own detector sees it, where other clients wait or compare pictures.
    'POST /dart/settle': async (ctx, r) => jsonReply(await ctx.desktop.settle(jsonBody(r, settleBody))),
    'POST /start_recording': (ctx) => recording.start(ctx),
    'POST /end_recording': (ctx) => recording.end(ctx),
  };
}

const HOME_DESKTOP = '/home/user/Desktop';
/** Python's truth: any value but an empty one. */
const flag = (v: unknown): boolean => Boolean(v);
function windowOf(r: Request): { window_name: string; strict: boolean; by_class: boolean } {
  const b = jsonBody(r, windowBody);
  return { window_name: b.window_name, strict: flag(b.strict), by_class: flag(b.by_class) };
}
