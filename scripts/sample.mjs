// Makes media/sample.br, the run that **Open Sample Run** shows: a small real run of the product, trained here.
// `npm run sample` trains it (about five minutes, local desktops) and packs it; `node scripts/sample.mjs RUN` packs a
// run that is there. What can be made again is left out (index, checkpoints, lessons), and the screens of most
// trajectories, as `store.keep` leaves them out: kept are those of the last evaluation, of some groups, and of a
// demonstration of each task.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, inflateSync } from 'node:zlib';
import { ensureBuilt } from './lib/ensure.mjs';

/** Screens in it, and what the whole may take. */
const MOST_SCREENS = 52,
  MOST_BYTES = 230_000,
  OUT = 'media/sample.br';

const scratch = mkdtempSync(join(tmpdir(), 'dart-sample-'));
let table, exported;

function cli(...args) {
  const { status, stdout } = spawnSync(process.execPath, ['dist/runtime.js', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`dart-studio ${args.join(' ')} ended with ${status}`);
  return stdout;
}
function train(to) {
  const runs = join(to, 'runs');
  mkdirSync(runs);
  cli('train', 'scripts/sample.dart-run.json', '--runs', runs, '--json');
  return join(
    runs,
    readdirSync(runs).find((d) => existsSync(join(runs, d, 'run.json'))),
  );
}

function pack(run) {
  const meta = JSON.parse(readFileSync(join(run, 'run.json'), 'utf8')),
    file = (path, data) => ({ path, data: Buffer.from(data) });
  // Where it was trained says nothing to anybody else.
  meta.config.store.dir = 'runs';
  // Reading it leaves the summary that windows without a runtime list it by.
  const summary = summaryOf(run, meta),
    files = [
      file('run.json', `${JSON.stringify(meta, null, 2)}\n`),
      file('summary.json', `${JSON.stringify(summary)}\n`),
      ...readdirSync(join(run, 'journal'))
        .sort()
        .map((f) => file(`journal/${f}`, readFileSync(join(run, 'journal', f)))),
    ],
    frames = screensOf(run).map((hash) => ({
      hash,
      ...pixels(readFileSync(join(scratch, 'traj', 'frames', hash.slice(0, 2), `${hash}.png`))),
    })),
    head = Buffer.from(
      JSON.stringify({
        run: meta.id,
        files: files.map((f) => ({ path: f.path, bytes: f.data.length })),
        frames: frames.map(({ hash, width, height }) => ({ hash, width, height })),
      }),
    ),
    length = Buffer.alloc(4);
  length.writeUInt32BE(head.length);
  const whole = Buffer.concat([length, head, ...files.map((f) => f.data), ...frames.map((f) => f.rows)]),
    packed = brotliCompressSync(whole, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
        [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
        [constants.BROTLI_PARAM_SIZE_HINT]: whole.length,
      },
    });
  if (packed.length > MOST_BYTES) throw new Error(`${packed.length} bytes; the sample may take ${MOST_BYTES}`);
  writeFileSync(OUT, packed);
  console.log(
    `${OUT}: ${meta.id}, ${summary.rollouts} rollouts, ${frames.length} screens, ${Math.round(packed.length / 1000)} kB; trained ${new Date(meta.createdAt).toISOString().slice(0, 10)}`,
  );
}

/** What the runtime leaves in a run folder (runtime/service/summaryFile.ts), of a run whose runtime was the command line. */
function summaryOf(run, meta) {
  const s = JSON.parse(cli('runs', 'show', run, '--json')),
    last = s.evals.at(-1);
  return {
    run: '',
    id: meta.id,
    name: meta.name,
    createdAt: meta.createdAt,
    state: 'finished',
    rollouts: rollouts(run).filter((r) => r.provenance === 'rollout' && (r.started_at !== null || r.outcome !== null))
      .length,
    version: last.version,
    seed: meta.config.seed,
    evals: s.evals.map((e) => e.successes / e.episodes),
    lastEval: { ...last, low: wilson(last)[0], high: wilson(last)[1], perFamily: {} },
  };
}
function wilson({ successes, episodes }) {
  const z = 1.96,
    p = successes / episodes,
    middle = (p + z ** 2 / (2 * episodes)) / (1 + z ** 2 / episodes),
    half = (z / (1 + z ** 2 / episodes)) * Math.sqrt((p * (1 - p)) / episodes + z ** 2 / (4 * episodes ** 2));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

function rollouts(run) {
  if (!table) {
    const to = join(scratch, 'rollouts.json');
    cli('runs', 'export', run, to, '--what', 'rollouts');
    table = JSON.parse(readFileSync(to, 'utf8'));
  }
  return table;
}

/** Hashes of the screens to keep, whole trajectories: each is worth as much as what it is compared with. */
function screensOf(run) {
  const all = rollouts(run).filter((r) => (r.outcome === 'success' || r.outcome === 'failure') && r.steps > 0),
    last = all.filter((r) => r.id.startsWith('probe/final/')),
    groups = Map.groupBy
      ? Map.groupBy(
          all.filter((r) => r.group && r.state === 'trained'),
          (r) => r.group,
        )
      : grouped(all.filter((r) => r.group && r.state === 'trained')),
    mixed = [...groups.values()].filter((g) => new Set(g.map((r) => r.outcome)).size === 2),
    byFamily = new Map(mixed.map((g) => [g[0].family, g])),
    shown = [...new Map(all.filter((r) => r.provenance === 'oracle').map((r) => [r.family, r])).values()];
  const kept = new Set();
  for (const r of [...last, ...[...byFamily.values()].flat(), ...shown]) {
    const fresh = framesOf(run, r.id).filter((h) => !kept.has(h));
    if (kept.size + fresh.length <= MOST_SCREENS) for (const h of fresh) kept.add(h);
  }
  return [...kept];
}
function grouped(rows) {
  const out = new Map();
  for (const r of rows) out.set(r.group, [...(out.get(r.group) ?? []), r]);
  return out;
}

/** From the run's own export, which names the screen of every step. */
function framesOf(run, id) {
  if (!exported) {
    const to = join(scratch, 'traj');
    cli('export', run, to, '--format', 'traj');
    exported = new Map();
    for (const f of readdirSync(to, { recursive: true })) {
      if (!f.endsWith('.traj.jsonl')) continue;
      const [head, ...steps] = readFileSync(join(to, f), 'utf8')
        .trim()
        .split('\n')
        .map((l) => JSON.parse(l));
      exported.set(head.row.rollout, [
        ...new Set(steps.flatMap((s) => [s.frame.hash, ...(s.after ? [s.after.hash] : [])])),
      ]);
    }
  }
  return exported.get(id) ?? [];
}

/** Size and rows of a screen as the store writes it: 8-bit RGB, every row unfiltered behind a zero byte. */
function pixels(png) {
  const width = png.readUInt32BE(16),
    height = png.readUInt32BE(20),
    parts = [];
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const rows = inflateSync(Buffer.concat(parts));
  if (rows.length !== (width * 3 + 1) * height) throw new Error('a screen that the store did not write');
  return { width, height, rows };
}

await ensureBuilt();
try {
  pack(process.argv[2] ? resolve(process.argv[2]) : train(scratch));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
