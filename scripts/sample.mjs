// Makes media/sample from a run folder: a few groups of real trajectories as .traj.jsonl with their frames, so that the
// first look needs neither desktops nor training. `node scripts/sample.mjs RUN [OUT]`
import { squeezePictures } from './lib/squeeze-png.mjs';
import { build } from 'esbuild';
import { copyFile, cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureBuilt } from './lib/ensure.mjs';

const MAX_BYTES = 1.5e6,
  MAX_GROUPS = 3;
const [run, out = 'media/sample'] = process.argv.slice(2);
if (!run) {
  console.error('node scripts/sample.mjs RUN [OUT]: name a run folder');
  process.exit(2);
}

await ensureBuilt();
// The service reads the run; it is bundled for this once, where the packages it needs are found.
await mkdir('node_modules/.cache', { recursive: true });
const scratch = await mkdtemp(resolve('node_modules/.cache/sample-'));
try {
  const require =
    "import { createRequire as __cr } from 'node:module'; const require = __cr(import.meta.url); import { fileURLToPath as __fu } from 'node:url'; import { dirname as __dn } from 'node:path'; const __filename = __fu(import.meta.url); const __dirname = __dn(__filename);";
  await build({
    entryPoints: { service: 'runtime/service/index.ts' },
    outdir: scratch,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    external: ['onnxruntime-node', 'cpu-features', '*.node'],
    banner: { js: require },
    logLevel: 'error',
  });
  await cp('node_modules/sql.js/dist/sql-wasm.wasm', join(scratch, 'sql-wasm.wasm'));
  const { createStudioService } = await import(pathToFileURL(join(scratch, 'service.js')).href);
  const service = createStudioService({
    entry: { file: resolve('dist/runtime.js') },
    cacheDir: scratch,
    log: () => undefined,
  });
  const call = (name, params) =>
    service.handlers.get(name)(
      { run: resolve(run), ...params },
      { signal: new AbortController().signal, notify: () => undefined },
    );
  try {
    await sample(call);
  } finally {
    await service.close({ now: true });
  }
} finally {
  await rm(scratch, { recursive: true, force: true });
}

async function sample(call) {
  const groups = new Map();
  for (let cursor; ;) {
    const page = await call('trajectory/list', {
      filter: { provenance: ['rollout'], outcome: ['success', 'failure'] },
      limit: 1000,
      ...(cursor ? { cursor } : {}),
    });
    for (const r of page.rows)
      if (r.group && r.state === 'trained') groups.set(r.group, [...(groups.get(r.group) ?? []), r]);
    if (!(cursor = page.cursor)) break;
  }
  // Worth seeing: both verdicts in one group, several steps, and a policy that hesitates.
  const worth = (rows) => rows.reduce((a, r) => a + Math.min(r.steps, 8) + 4 * (r.entropy ?? 0), 0) / rows.length;
  const mixed = [...groups.values()]
    .filter(
      (rows) =>
        rows.some((r) => r.outcome === 'success' && r.steps >= 3) &&
        rows.some((r) => r.outcome === 'failure' && r.steps >= 3),
    )
    .sort((a, b) => worth(b) - worth(a));
  const chosen = [];
  for (const rows of mixed)
    if (chosen.length < MAX_GROUPS && !chosen.some((c) => c[0].family === rows[0].family)) chosen.push(rows);
  if (chosen.length === 0)
    throw new Error(`${run} has no trained group with a success and a failure of three steps each: train it longer`);

  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  let bytes = 0,
    files = 0;
  const frames = new Set();
  for (const rows of chosen) {
    const of = (o) =>
      rows
        .filter((r) => r.outcome === o)
        .sort((a, b) => b.steps - a.steps)
        .slice(0, 2);
    for (const r of [...of('success'), ...of('failure')]) {
      const view = await call('trajectory/get', { rollout: r.rollout }),
        { text } = await call('trajectory/export', { rollout: r.rollout });
      const fresh = [...new Set(view.steps.flatMap((s) => [s.frame.hash, ...(s.after ? [s.after.hash] : [])]))].filter(
          (h) => !frames.has(h),
        ),
        pathOf = (h) => join(h.slice(0, 2), `${h}.png`);
      const sizes = await Promise.all(fresh.map((h) => stat(join(view.framesDir, pathOf(h))).then((s) => s.size))),
        add = sizes.reduce((a, b) => a + b, text.length);
      if (bytes + add > MAX_BYTES) continue;
      bytes += add;
      for (const h of fresh) {
        frames.add(h);
        await mkdir(join(out, 'frames', h.slice(0, 2)), { recursive: true });
        await copyFile(join(view.framesDir, pathOf(h)), join(out, 'frames', pathOf(h)));
      }
      const name = `${r.family.split('/').at(-1)}-${r.outcome}-${r.rollout}.traj.jsonl`;
      await writeFile(join(out, name), text);
      console.log(
        `${name}  ${view.steps.length} steps, advantage ${view.advantage?.toFixed(2)}, ${view.steps.filter((s) => s.kept).length} kept, ${view.report?.checks.length ?? 0} checks`,
      );
      files++;
    }
  }
  squeezePictures(out);
  const { createdAt } = JSON.parse(await readFile(join(run, 'run.json'), 'utf8'));
  console.log(
    `${files} trajectories of ${chosen.length} groups, ${frames.size} frames, ${Math.round(bytes / 1000)} kB, recorded ${new Date(createdAt).toISOString().slice(0, 10)}`,
  );
}
