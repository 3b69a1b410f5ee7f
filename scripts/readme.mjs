// `node scripts/readme.mjs`: writes what pages say about options, commands and benchmarks from the run file's schema,
// the command line's program and the recorded reports. With --check: fails when a page is not current.
import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { load } from './lib/load.mjs';
import { benchmarkTables, scaleTables, vlmTables } from './lib/benchTables.mjs';
import { curationTables, earnedSaid } from './lib/curationTables.mjs';
import { deskTables } from './lib/deskTables.mjs';
import { gpuTable, measuredSource } from './lib/gpuTable.mjs';
import { code, table } from './lib/markdown.mjs';
import { provenTable } from './lib/provenTable.mjs';
import { figuresText, rowsOf } from './lib/figuresText.mjs';
import { imitationTables } from './lib/imitationTables.mjs';
import { quickstartTables } from './lib/quickstartTables.mjs';
import { soakTable } from './lib/soakTable.mjs';
import { vllmTable } from './lib/vllmTable.mjs';

export { benchmarkTables };

const root = fileURLToPath(new URL('..', import.meta.url));

/** Every key of the run file, a table for each section. */
export function runFileReference(schema) {
  const rowsOf = function* (node, at) {
    for (const [key, v] of Object.entries(node.properties ?? {})) {
      const name = at === '' ? key : `${at}.${key}`;
      if (v.properties) yield* rowsOf(v, name);
      else {
        const kind = v.enum ? v.enum.map(code).join(' ') : v.type === 'array' ? 'list' : v.type;
        yield [code(name), kind, v.default === undefined ? '' : code(JSON.stringify(v.default)), v.description ?? ''];
      }
    }
  };
  const head = ['key', 'values', 'default', 'meaning'],
    entries = Object.entries(schema.properties),
    sections = entries.filter(([, v]) => v.properties),
    rest = Object.fromEntries(entries.filter(([, v]) => !v.properties));
  return [
    `### At the top\n\n${table(head, [...rowsOf({ properties: rest }, '')])}`,
    ...sections.map(([key, v]) => `### ${key}\n\n${v.description}\n\n${table(head, [...rowsOf(v, key)])}`),
  ].join('\n\n');
}

/** Each preset as JSON, or, where it says where its values come from, as a table. */
export const presetReference = (presets, sources) =>
  Object.entries(presets)
    .map(([name, p]) => {
      const values = sources[name],
        rows = Object.entries(values ?? {}).map(([key, [v, from]]) => [code(key), code(JSON.stringify(v)), from]);
      return `### Preset ${name}\n\n${values ? table(['key', 'value', 'where it comes from'], rows) : `\`\`\`json\n${JSON.stringify(p, null, 2)}\n\`\`\``}`;
    })
    .join('\n\n');

/** Every command with its arguments and options. */
export function commandReference(program) {
  const pages = [];
  const walk = (command, above) => {
    const name = [...above, command.name()].join(' ');
    if (command.commands.length > 0) {
      for (const c of command.commands)
        walk(c, above.length === 0 && command === program ? [] : [...above, command.name()]);
      return;
    }
    const args = command.registeredArguments.map((a) => (a.required ? `<${a.name()}>` : `[${a.name()}]`));
    const parent = command.parent === program ? [] : command.parent.options;
    const rows = [
      ...command.registeredArguments.map((a, i) => [code(args[i]), a.description, '']),
      ...[...parent, ...command.options].map((o) => [
        code(o.flags),
        o.description,
        o.defaultValue === undefined || typeof o.defaultValue === 'boolean' ? '' : code(o.defaultValue),
      ]),
    ];
    pages.push(
      [
        `### ${name}`,
        command.description(),
        `\`\`\`sh\ndart-studio ${[name, ...args, ...(rows.length > args.length ? ['[options]'] : [])].join(' ')}\n\`\`\``,
        ...(rows.length > 0 ? [table(['argument or option', 'meaning', 'default'], rows)] : []),
      ].join('\n\n'),
    );
  };
  walk(program, []);
  return pages.join('\n\n');
}

/**
 * The report of a benchmark. One run writes page and JSON, and both say which: figures of different runs are not put
 * beside each other.
 */
async function report(name) {
  const [page, run] = await Promise.all([
    readFile(join(root, `test/bench/results/${name}/${name}.md`), 'utf8'),
    json(`${name}/${name}.json`),
  ]);
  if (run.at !== undefined && !page.includes(`Run of ${run.at}, commit ${run.commit}.`))
    throw new Error(`test/bench/results/${name}: ${name}.md and ${name}.json are not of one run`);
  return page;
}

const json = async (file) => JSON.parse(await readFile(join(root, 'test/bench/results', file), 'utf8'));
/** The ablation as far as it is recorded, and version 0.1's. */
async function curation() {
  const [now, before] = await Promise.all([
    json('curation/curation.json').catch((e) => {
      if (e.code !== 'ENOENT') throw e;
    }),
    readFile(join(root, 'test/bench/results/curation/version-0.1.md'), 'utf8'),
  ]);
  const { EFFECT_COLUMNS: columns } = await load('test/bench/curation/verdict.ts');
  return { curation: curationTables({ now, before, columns }, table), earned: earnedSaid(now) };
}
/** The figures of each seed that is recorded. */
async function seedsIn(folder) {
  const files = (await readdir(join(root, 'test/bench/results', folder))).filter((f) => /^seed-\d+\.json$/.test(f));
  return Promise.all(files.map((f) => json(`${folder}/${f}`)));
}

/** The quick start, what imitation alone comes to beside it, and the preset desk. */
async function trained() {
  const { PRESETS } = await load('runtime/config/index.ts'),
    [seeds, unmended, before, desks, blind, imitated] = await Promise.all([
      seedsIn('quickstart'),
      seedsIn('quickstart/before-december'),
      seedsIn('quickstart/reader-2'),
      seedsIn('desk'),
      json('blind/blind.json'),
      json('quickstart/reader-2/imitation.json'),
    ]),
    earlier = [
      { said: 'the same network before the mends of December 1', runs: unmended },
      { said: 'the network before (`reader-2`)', runs: before },
    ];
  const templates = blind.rows.filter((r) => r.section === 'template'),
    learnedBlind = templates.filter((r) => r.blind).map((r) => r.family),
    unsure = templates.filter((r) => !r.blind && r.high >= 0.2).map((r) => r.family),
    own = PRESETS.quickstart.warmStart.steps,
    imitation = await imitationTables({ rows: imitated.rows, quickstart: before, learnedBlind, own }, table),
    { overRow } = await figuresText();
  const whose = `Imitation alone is recorded with the network before (\`reader-2\`, Intel Xeon), whose quick starts come to ${overRow('heldout', rowsOf(before, 'heldout'))} on other arrangements. `;
  return {
    quickstart: await quickstartTables(
      {
        seeds,
        learnedBlind,
        unsure,
        imitation: { ...imitation, sentence: whose + imitation.sentence },
        earlier,
      },
      table,
    ),
    imitation,
    desk: await deskTables(desks, table),
  };
}

/** Pages where any click or drag will do for a policy that was trained blind. */
const ANY_CLICK = ['circle-center', 'draw-line', 'use-colorwheel', 'use-colorwheel-2'];
/** What the front page says that the quick start's policy is not. */
export async function limits({ desk, miniwob, earned }) {
  const { policyModel } = await load('runtime/trainer/native/model/policyGraph.ts'),
    { READER_SPEC } = await load('runtime/domain/policySpec.ts'),
    parameters = policyModel(READER_SPEC).layout.total,
    pages = miniwob.rows.filter((r) => r.section === 'page'),
    solved = pages.filter((p) => p.at80).map((p) => p.page.replace('miniwob/', ''));
  return [
    '**What this is not**, and what else was measured ([all benchmarks](test/bench/README.md)):',
    [
      `- **No agent for everything**: a network of ${(parameters / 1e6).toFixed(2)} million parameters learns these tasks, and to find words on these screens; it does not learn to follow instructions in general, as the row of templates never trained on shows.`,
      desk.said,
      `- **MiniWoB++**: after ${miniwob.minutes} minutes without demonstrations of its pages, \`reader-3\` solves ${solved.length} of ${pages.length} pages at least four times of five where neither its blind self nor chance does as often, asked ${miniwob.episodes} seeds of each that nobody had looked at (one training; ${solved.filter((p) => ANY_CLICK.includes(p)).length} may need no eyes: a policy trained blind was not measured; [table](test/bench/README.md#miniwob)).`,
      earned,
    ].join('\n'),
  ].join('\n\n');
}

/** What the page of run files says was proven, and how fast the engine is on a GPU. */
async function proven() {
  const of = async (file) => JSON.parse(await readFile(join(root, file), 'utf8')),
    gpu = await of('test/engine/results/gpu.json'),
    { estimate } = await load('test/bench/schedule/statistics.ts');
  return {
    gpu: gpuTable(gpu, table),
    proven: provenTable(
      {
        gpu,
        tinker: await of('test/peers/tinker/results/tinker.json'),
        vllm: await of('test/peers/vllm/results/vllm.json'),
        sdk: await of('test/peers/tinker-sdk/results/sdk.json'),
        cookbook: await of('test/peers/tinker-sdk/results/cookbook.json'),
        engine: await of('test/engine/results/engine.json'),
        vlm: await json('vlm/vlm.json'),
        kills: await json('vlm/kills.json'),
        halfOf: (xs) => estimate(xs).half,
      },
      table,
    ),
  };
}

/** Memory in the recorded soaks. */
async function soaked() {
  const of = async (file) => JSON.parse(await readFile(join(root, 'test/soak/results', file), 'utf8')),
    [hour, busy] = await Promise.all(['soak.json', 'soak-45-busy.json'].map(of)),
    minutes = (run) => `${Math.round(run.minutes)} minutes`;
  return soakTable(
    [
      [minutes(hour), hour],
      [minutes(busy), busy],
    ],
    table,
  );
}

/** Pages with everything between their markers made anew: path -> [now, as it should be]. */
export async function generatedPages() {
  const { PRESETS, PRESET_SOURCES } = await load('runtime/config/index.ts');
  const { jsonSchema } = await load('runtime/run/backends/schema.ts');
  const { measuredRates } = await load('runtime/config/gpuFigures.ts');
  const recorded = async (file) => JSON.parse(await readFile(join(root, file), 'utf8')),
    gpu = await recorded('test/engine/results/gpu.json');
  const { createProgram } = await load('runtime/cli/cli.ts');
  const [schedule, live, slow, pool, vlm] = await Promise.all(
    ['schedule', 'live', 'live-vlm', 'pool', 'vlm'].map(report),
  );
  const { quickstart, imitation, desk } = await trained(),
    { curation: ablation, earned } = await curation();
  const parts = {
    'README.md': {
      quickstart: quickstart.short,
      limits: await limits({
        desk,
        miniwob: await json('miniwob/other-seeds.json'),
        earned,
      }),
    },
    'runtime/config/README.md': {
      ...(await proven()),
      rates: measuredRates(),
      keys: runFileReference(jsonSchema()),
      presets: presetReference(PRESETS, PRESET_SOURCES),
    },
    'runtime/cli/README.md': {
      commands: commandReference(createProgram({ serve: async () => {}, train: async () => {} }, () => {})),
    },
    'runtime/policy/README.md': { vllm: vllmTable(await recorded('test/peers/vllm/results/vllm.json'), table) },
    'test/bench/README.md': {
      ...benchmarkTables({ schedule, live, slow, pool }),
      curation: ablation,
      quickstart: quickstart.each,
      before: quickstart.beside,
      imitation: imitation.table,
      desk: desk.table,
      vlm: vlmTables(vlm),
      scale: scaleTables(await json('scale/latest.json')),
    },
    'test/soak/README.md': { memory: await soaked() },
  };
  const pages = new Map();
  for (const [page, texts] of Object.entries(parts)) {
    const now = await readFile(join(root, page), 'utf8');
    let next = now;
    for (const [name, text] of Object.entries(texts)) {
      const marks = new RegExp(`(<!-- ${name}:begin -->)[\\s\\S]*(<!-- ${name}:end -->)`);
      if (!marks.test(next)) throw new Error(`${page} has no place for "${name}"`);
      next = next.replace(marks, (_, from, to) => `${from}\n\n${text}\n\n${to}`);
    }
    pages.set(page, { now, next });
  }
  const measured = 'runtime/config/measured.ts';
  pages.set(measured, { now: await readFile(join(root, measured), 'utf8').catch(() => ''), next: measuredSource(gpu) });
  return pages;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [page, { now, next }] of await generatedPages()) {
    if (now === next) continue;
    if (!process.argv.includes('--check')) await writeFile(join(root, page), next);
    else {
      console.error(`${page} is not current: npm run generate`);
      process.exitCode = 1;
    }
  }
}
