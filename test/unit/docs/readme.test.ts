import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { createProgram } from '../../../runtime/cli/cli.js';
import { SERVE_FLAGS } from '../../../runtime/trainer/engine/serveOptions.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { estimate } from '../../bench/schedule/statistics.js';

/** What the pages for users say can be done can be done. */
const pages = [
    'README.md',
    'CONTRIBUTING.md',
    'runtime/config/README.md',
    'runtime/cli/README.md',
    'test/bench/README.md',
  ],
  text = (page: string): string => readFileSync(page, 'utf8'),
  { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
const { benchmarkTables, commandReference, generatedPages } = (await import(
  pathToFileURL('scripts/readme.mjs').href
)) as {
  generatedPages(): Promise<Map<string, { now: string; next: string }>>;
  commandReference(program: Command): string;
  benchmarkTables(reports: Record<string, string>): Record<string, string>;
};

describe('pages for users', () => {
  it('name only npm scripts there are', () => {
    const named = pages.flatMap((p) => [...text(p).matchAll(/npm run (?:-s )?([\w:]+\w)/g)].map((m) => m[1]!));
    expect(named).toEqual(expect.arrayContaining(['quickstart', 'cli', 'schema', 'lint']));
    expect(named.filter((n) => !(n in scripts) && n !== 'bench:NAME')).toEqual([]);
  });
  it('quote in the troubleshooting of README what is really said', () => {
    const [, rows] = /## Troubleshooting\n([\s\S]*?)\n## /.exec(text('README.md'))!,
      quoted = rows!
        .split('\n')
        .flatMap((l) => [...(l.split('|')[1] ?? '').matchAll(/`([^`]+ [^`]+)`/g)].map((m) => m[1]!)),
      said = ['runtime/cluster/providers/choose.ts', 'package.nls.json'].map(text).join('\n');
    expect(quoted.length).toBeGreaterThan(0);
    expect(quoted.filter((q) => !said.includes(q))).toEqual([]);
  });
  it("list the engine's options as the engine has them", () => {
    const engine = text('runtime/trainer/engine/dart_engine/__main__.py').replaceAll('_', ''),
      page = text('runtime/trainer/engine/README.md');
    for (const { flag, usual, says } of SERVE_FLAGS) {
      expect(page).toContain(`| \`${flag}\` | ${usual} | ${says} |`);
      const [line] = engine.split('\n').filter((l) => l.includes(`add("${flag}"`));
      expect(line, flag).toBeDefined();
      if (/^\d+$/.test(usual)) expect(line).toContain(`default=${usual}`);
    }
    const program = createProgram({ serve: () => Promise.resolve(), train: () => Promise.resolve() }, () => undefined),
      serve = program.commands.find((c) => c.name() === 'engine')!.commands.find((c) => c.name() === 'serve')!;
    let help = '';
    serve.configureOutput({ writeOut: (s) => (help += s) }).outputHelp();
    expect(SERVE_FLAGS.filter(({ flag }) => !help.includes(`  ${flag} `))).toEqual([]);
  });
  it('show run files that are right', () => {
    const blocks = ['README.md', 'runtime/config/README.md'].flatMap((p) =>
      [...text(p).matchAll(/```json\n([\s\S]*?)```/g)].map((m) => m[1]!),
    );
    expect(blocks.length).toBeGreaterThanOrEqual(5);
    // What a block says is what the run then has: a key in the wrong place would be refused or change nothing.
    for (const b of blocks) {
      const { preset: _, ...said } = JSON.parse(b) as Record<string, unknown>;
      expect(parseRunFile(JSON.parse(b)), b).toMatchObject(said);
    }
  });
  it('name only keys of the run file that it has', () => {
    const schema = JSON.parse(text('media/run.schema.json')) as object;
    const keys = new Set<string>();
    const walk = (node: object, at: string): void => {
      for (const [k, v] of Object.entries((node as { properties?: Record<string, object> }).properties ?? {})) {
        keys.add(`${at}${k}`);
        walk(v, `${at}${k}.`);
      }
    };
    walk(schema, '');
    const sections = [...keys].filter((k) => !k.includes('.')).join('|');
    const rooms = [
      'runtime',
      ...['cluster', 'tasks', 'policy', 'rollout', 'data', 'trainer'].map((r) => `runtime/${r}`),
    ];
    for (const page of [...pages, ...rooms.map((r) => `${r}/README.md`)])
      for (const [, key] of text(page).matchAll(new RegExp(`\`((?:${sections})\\.[\\w.]+\\w)(?:: [^\`]*)?\``, 'g')))
        // Files, and the kinds of errors that are called after a run.
        if (!/\.(ts|json|md|onnx)$|^run\.(busy|lost)$/.test(key!)) expect(keys, `${page}: ${key!}`).toContain(key!);
  });
  it('show pictures that are there', () => {
    for (const page of pages)
      for (const [, file] of text(page).matchAll(/!\[[^\]]*\]\(([^)]+)\)/g))
        expect(existsSync(join(dirname(page), file!)), file).toBe(true);
  });
  it('say what the quick start is on the first page, in under 150 lines', () => {
    expect(text('README.md').split('\n').length).toBeLessThan(150);
    const figure = '\\d+ % \\[\\d+, \\d+\\]';
    expect(text('README.md')).toMatch(new RegExp(`^\\| unseen words and numbers \\| ${figure} \\| ${figure} \\|`, 'm'));
    // Which of these need to see is not known.
    expect(text('README.md')).toMatch(new RegExp(`^\\| templates never trained on \\|  \\| ${figure} \\|`, 'm'));
  });
});

describe('generated pages', () => {
  it('are current', async () => {
    const generated = await generatedPages();
    expect([...generated.keys()]).toEqual([
      'README.md',
      'runtime/config/README.md',
      'runtime/cli/README.md',
      'runtime/policy/README.md',
      'test/bench/README.md',
      'test/soak/README.md',
      'runtime/config/measured.ts',
    ]);
    for (const [page, { now, next }] of generated) expect(now === next, `${page}: npm run generate`).toBe(true);
  });
  it('say as many tasks a row as the records have, the same for each seed', () => {
    const tasks = (label: string): number[] => {
      const episodes = [1, 2, 3].map(
        (seed) =>
          (
            JSON.parse(text(`test/bench/results/quickstart/seed-${seed}.json`)) as {
              rows: { label: string; episodes: number }[];
            }
          ).rows.find((r) => r.label === label)!.episodes,
      );
      return [...new Set(episodes)];
    };
    for (const label of ['heldout', 'words', 'near', 'pairs', 'looks']) expect(tasks(label), label).toEqual([84]);
    expect([tasks('templates'), tasks('fresh')]).toEqual([[220], [120]]);
    expect(text('README.md')).toContain(
      'the same 84 tasks a row (220 and 120 on templates never trained on and on fresh',
    );
    expect(text('test/bench/README.md')).toContain('on 220 of templates never trained on and 120 of fresh ones');
  });
  it('say what decides about the pool, how often it was asked, and what brackets are', () => {
    const [, pool] = /<!-- pool:begin -->([\s\S]*)<!-- pool:end -->/.exec(text('test/bench/README.md'))!,
      [, vlm] = /<!-- vlm:begin -->([\s\S]*)<!-- vlm:end -->/.exec(text('test/bench/README.md'))!;
    expect(pool).toContain('solved none of 50 to 60 tasks a seed');
    expect(pool).toMatch(/\| imitation warm start alone \| 1 2 3 \| 69 of 170: 41 % \[/);
    expect(pool).toContain('above the pool without it');
    expect(vlm).toMatch(
      /\| places and looks never seen \| after RL \| 3 \| 268 of 384: 70 % \[42, 98\] \| 70 % ± 28 \|/,
    );
    expect(vlm).toContain('95 % intervals over seeds');
  });
  it('count pages of MiniWoB++ on seeds that were not used for tuning, and say which were', () => {
    const recorded = (name: string): { skip?: number; episodes: number; rows: { at80?: boolean }[] } =>
        JSON.parse(text(`test/bench/results/miniwob/${name}.json`)) as ReturnType<typeof recorded>,
      others = recorded('other-seeds'),
      solved = others.rows.filter((r) => r.at80).length;
    expect(others.skip).toBeGreaterThanOrEqual(recorded('miniwob').episodes);
    expect(text('README.md')).toContain(`solves ${solved} of 130 pages at least four times of five`);
    expect(text('README.md')).toContain(`asked ${others.episodes} seeds of each that nobody had looked at`);
    expect(text('test/bench/README.md')).toContain('Those were ten of the fifty seeds that are reported');
  });
  it('have every command with every argument and option', () => {
    const program = createProgram({ serve: () => Promise.resolve(), train: () => Promise.resolve() }, () => undefined);
    const page = text('runtime/cli/README.md');
    const leaves = (c: Command): Command[] => (c.commands.length > 0 ? c.commands.flatMap(leaves) : [c]);
    expect(leaves(program).length).toBeGreaterThanOrEqual(14);
    for (const c of leaves(program)) {
      const name = c.parent === program ? c.name() : `${c.parent!.name()} ${c.name()}`;
      const section = page.split(`### ${name}\n`)[1]?.split('\n### ')[0] ?? '';
      for (const o of c.options) expect(section, name).toContain(`\`${o.flags}\``);
      for (const a of c.registeredArguments) expect(section, name).toContain(a.name());
    }
  });
  it('show what a program says, with bars and line breaks that fit into a table', () => {
    const program = new Command('x');
    program.command('go').argument('[a|b]', 'one of\ntwo').description('Goes.').option('-f, --far <n>', 'how far', '3');
    expect(commandReference(program)).toBe(
      '### go\n\nGoes.\n\n```sh\ndart-studio go [a|b] [options]\n```\n\n' +
        '| argument or option | meaning | default |\n| --- | --- | --- |\n' +
        '| `[a\\|b]` | one of two |  |\n| `-f, --far <n>` | how far | `3` |',
    );
  });
  it('fail where a report no longer has the table they are made from', () => {
    expect(() => benchmarkTables({ schedule: '| a |\n| --- |\n', live: '', curation: '', pool: '' })).toThrow(
      /columns/,
    );
  });
});

describe('launch configurations', () => {
  const { configurations } = JSON.parse(text('.vscode/launch.json')) as {
    configurations: { name: string; request: string; program?: string; preLaunchTask?: string }[];
  };
  const { tasks } = JSON.parse(text('.vscode/tasks.json')) as { tasks: { label: string; script?: string }[] };

  it('start programs that are there, after tasks that are there', () => {
    for (const c of configurations) {
      const program = c.program?.replace('${workspaceFolder}/', '');
      if (program?.startsWith('node_modules/')) expect(existsSync(program), c.name).toBe(true);
      // What the build makes must be built first.
      else if (c.request === 'launch')
        expect([c.preLaunchTask, program ?? 'dist/'], c.name).toEqual(['build', expect.stringMatching(/^dist\//)]);
      const task = tasks.find((t) => t.label === c.preLaunchTask);
      if (c.preLaunchTask !== undefined) expect(scripts[task?.script ?? ''], c.name).toBeDefined();
    }
  });
  it('are those that CONTRIBUTING describes', () => {
    const debugging = text('CONTRIBUTING.md')
      .split('\n## ')
      .find((x) => x.startsWith('Debugging\n'))!;
    const named = [...debugging.matchAll(/^\| \*\*(.+?)\*\* \|/gm)].map((m) => m[1]);
    expect(named).toEqual(configurations.map((c) => c.name));
  });
});

describe('what was proven against which server', () => {
  interface Results {
    readonly tinker: object;
    readonly vllm: object;
    readonly sdk: object;
    readonly cookbook: object;
    readonly engine: { readonly figures: object };
    readonly gpu: { readonly probe: object };
    readonly vlm: { readonly bars: readonly { readonly name: string }[] };
    readonly kills: object;
  }
  const of = <T>(file: string): T => JSON.parse(readFileSync(file, 'utf8')) as T,
    recorded: Results = {
      sdk: of('test/peers/tinker-sdk/results/sdk.json'),
      cookbook: of('test/peers/tinker-sdk/results/cookbook.json'),
      tinker: of('test/peers/tinker/results/tinker.json'),
      vllm: of('test/peers/vllm/results/vllm.json'),
      engine: of('test/engine/results/engine.json'),
      gpu: of('test/engine/results/gpu.json'),
      vlm: of('test/bench/results/vlm/vlm.json'),
      kills: of('test/bench/results/vlm/kills.json'),
    };
  it('says of our engine what its results say', async () => {
    const { provenTable } = (await import(pathToFileURL('scripts/lib/provenTable.mjs').href)) as {
        provenTable(
          r: Results & { halfOf(xs: readonly number[]): number },
          table: (head: string[], rows: string[][]) => string[][],
        ): string[][];
      },
      rows = (r: Partial<Results>): string[] =>
        provenTable({ ...recorded, ...r, halfOf: (xs) => estimate(xs).half }, (_, cells) => cells).map((cells) =>
          cells.join(' | '),
        );
    for (const r of rows({})) expect(text('runtime/config/README.md')).toContain(r);
    expect(rows({}).join()).toMatch(/RL removes \d+ % ± \d+ \(\d seeds\) of the failures/);
    const changed = rows({
      cookbook: { ...recorded.cookbook, reward_first_5: 0.125, 'tinker-cookbook': '9.9' },
      sdk: { ...recorded.sdk, checks: [{ name: 'sampling', ok: false }] },
      engine: { ...recorded.engine, figures: { ...recorded.engine.figures, gradient_relative_error: 1.5e-6 } },
      kills: { ...recorded.kills, kills: 7, batches_twice: 1 },
      vlm: {
        ...recorded.vlm,
        bars: recorded.vlm.bars.filter((b) => b.name !== 'failures_removed_by_rl'),
      },
      vllm: { ...recorded.vllm, logprob_max_difference: 4e-5, stale_versions: 2 },
      gpu: { ...recorded.gpu, probe: { ...recorded.gpu.probe, ok: true } },
    }).join('\n');
    for (const said of [
      '9.9 | 40 updates, reward 0.13 to 1',
      '**fails**: sampling',
      'gradient 1.5e-6 from autograd',
      'kill -9 of daemon, runtime and engine, 7 times',
      '**1 batches twice',
      'the probe passes',
      '**no figure**: a seed is missing',
      '2 stale answers during 20 publishes',
      '4.0e-5 (goal 3e-5)',
    ])
      expect(changed).toContain(said);
  });
  it('names damaged adapters that a real vLLM did not withstand', async () => {
    const { vllmTable } = (await import(pathToFileURL('scripts/lib/vllmTable.mjs').href)) as {
        vllmTable(record: object, table: (head: string[], rows: string[][]) => string): string;
      },
      vllm = of<{ damaged: readonly { damage: string }[] }>('test/peers/vllm/results/vllm.json'),
      [first, ...rest] = vllm.damaged,
      damaged = [{ ...first, failed_calls: 1 }, ...rest],
      said = vllmTable({ ...vllm, damaged }, (_, rows) => rows.flat().join('\n'));
    expect(said).toContain(`\n${rest.length} of ${vllm.damaged.length}: ${first!.damage}`);
    expect(said).toContain(`; **not**: ${first!.damage}`);
  });
});

describe('the engine on a GPU', () => {
  it('has what was calculated beforehand beside what was measured', () => {
    const page = text('runtime/config/README.md'),
      table = page.slice(page.indexOf('<!-- gpu:begin -->'), page.indexOf('<!-- gpu:end -->')),
      row = (shape: string): string[] =>
        table
          .split('\n')
          .find((l) => l.startsWith(`| ${shape} |`))!
          .split(' | ');
    // Shape, commit, an update, on paper, trained, prompts, decoded, on paper, training, on paper, sampling.
    expect([3, 7, 9].map((i) => row('Qwen2.5-VL-7B')[i])).toEqual(['10', '160 to 200', '21.7']);
    expect([3, 7, 9].map((i) => row('Qwen3-VL-8B')[i])).toEqual(['—', '160 to 200', '22.0']);
    expect([3, 7, 9].map((i) => row('Qwen2.5-VL-3B')[i])).toEqual(['—', '—', '—']);
    // The page's own table of peaks says the same.
    for (const peak of ['| Qwen2.5-VL-7B, UI-TARS-1.5-7B | 21.7 GiB |', '| Qwen3-VL-8B | 22.0 GiB |'])
      expect(page).toContain(peak);
  });
});
