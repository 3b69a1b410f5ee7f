import type { TaskContext } from '../context.js';
import { HOME, baseName, desktopPath } from '../context.js';
import type { SetupParameters } from '../taskFile.js';
import { Spoiled } from '../spoiled.js';
import { openersOf } from './openers.js';
import { activate, waitForWindow } from './windows.js';

/** Put local assets into the desktop. */
export async function download(ctx: TaskContext, p: SetupParameters<'download'>): Promise<void> {
  for (const f of p.files) {
    const data = await ctx.assets.read(f.url, { name: baseName(f.path), task: ctx.task });
    await ctx.desktop.writeFile(desktopPath(f.path), data);
  }
}

/** Open a file or folder with the desktop's application for it, wait for its window and bring it to the front. */
export async function open(ctx: TaskContext, p: SetupParameters<'open'>): Promise<void> {
  const path = desktopPath(p.path);
  const kind = (
    await ctx.desktop.exec(['stat', '-L', '-c', '%F', path], { timeoutMs: 10_000, signal: ctx.signal })
  ).stdout
    .toString('utf8')
    .trim();
  if (kind === '') throw new (ctx.verdict ? Spoiled : Error)(`there is no file ${path}`);
  const app = await firstInstalled(
    ctx,
    openersOf(path, kind === 'directory').map((o) => o.program),
  );
  if (app === undefined) throw new Error(`no application of this desktop opens ${baseName(path)}`);
  await ctx.desktop.spawn([app, path], { cwd: HOME });
  const w = await waitForWindow(ctx, baseName(path));
  await activate(ctx, w.id);
}

async function firstInstalled(ctx: TaskContext, programs: readonly string[]): Promise<string | undefined> {
  if (programs.length === 0) return undefined;
  const r = await ctx.desktop.exec(
    [
      '/bin/sh',
      '-c',
      'for p; do command -v "$p" >/dev/null && { echo "$p"; exit 0; }; done; exit 1',
      'sh',
      ...programs,
    ],
    { timeoutMs: 10_000, signal: ctx.signal },
  );
  return r.code === 0 ? r.stdout.toString('utf8').trim() : undefined;
}
