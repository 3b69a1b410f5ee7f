import { writeFile } from 'node:fs/promises';
import { id, type TaskId } from '../domain/index.js';
import { connectEngine, imageStatus, type BuildProgress } from '../cluster/imageBuild.js';
import { createTaskEngine } from '../tasks/index.js';
import { deskSuite } from '../tasks/suites/desk/index.js';
import { pngOf } from '../data/store/png.js';
import { parseRunFile } from '../config/index.js';
import { buildDesktop, chooseProvider, probeProviders, specOf } from '../cluster/provide.js';
import type { Options } from './options.js';

/** One line rewritten in place on a terminal; a line a phase elsewhere. */
function progress(): { on: (p: BuildProgress) => void; end: () => void } {
  let phase = '';
  return {
    on: (p) => {
      const text = `${p.fraction === undefined ? '' : `${String(Math.round(p.fraction * 100)).padStart(3)} %  `}${p.message}`;
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text.slice(0, (process.stderr.columns ?? 100) - 1)}`);
      else if (p.phase !== phase || p.phase === 'done') process.stderr.write(`${text}\n`);
      phase = p.phase;
    },
    end: () => {
      if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
    },
  };
}

/** `desktop build`: the image in the Docker engine, or the root file system of the local provider. */
export async function build(o: Options): Promise<number> {
  const abort = new AbortController(),
    p = progress();
  process.once('SIGINT', () => {
    abort.abort();
  });
  try {
    const { what } = await buildDesktop({
      provider: String(o['provider'] ?? 'auto'),
      force: o['force'] === true,
      onProgress: p.on,
      signal: abort.signal,
    });
    p.end();
    process.stdout.write(`${what} is ready.\n`);
  } finally {
    p.end();
  }
  return 0;
}

/** `desktop status`: what each provider says of itself, and what is built. */
export async function status(o: Options): Promise<number> {
  const rows = await probeProviders(parseRunFile({}).desktops);
  const docker = rows.find((r) => r.provider === 'docker')?.ok === true;
  const built = await imageStatus(docker ? connectEngine() : undefined);
  if (o['json']) {
    process.stdout.write(JSON.stringify({ providers: rows, built }, null, 2) + '\n');
    return 0;
  }
  for (const r of rows)
    process.stdout.write(
      `${r.ok ? '✓' : '✗'} ${r.provider.padEnd(6)} ${r.ok ? r.detail : `${r.problem?.message ?? r.detail}\n         ${r.problem?.remedy ?? ''}`}\n`,
    );
  process.stdout.write(
    `image            ${built.image ? `${built.tag}, ${Math.round(built.image.bytes / 1e6)} MB` : 'not built'}\nroot file system ${built.rootfs ? built.rootfs.path : 'not built'}\n`,
  );
  return 0;
}

/** `desktop screenshot FILE`: a desktop, with a task set up on it when one is named. */
export async function screenshot(file: string, o: Options): Promise<number> {
  const config = parseRunFile({}, { desktops: { provider: String(o['provider'] ?? 'auto') as 'auto' } }).desktops;
  const provider = await chooseProvider(config);
  try {
    const desktop = await provider.create(specOf(config));
    if (typeof o['task'] === 'string') {
      const task = deskSuite().byId(id<TaskId>(o['task']));
      await createTaskEngine().setup(task, desktop, new AbortController().signal);
      process.stdout.write(`${task.instruction}\n`);
    }
    await desktop.settle();
    await writeFile(file, await pngOf(await desktop.observe()));
  } finally {
    await provider.dispose();
  }
  return 0;
}
