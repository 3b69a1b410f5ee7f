import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  parseRunFile,
  PRESET_SOURCES,
  startsEngine,
  type RunConfig,
  type RunFile,
} from '../../../runtime/config/index.js';
import { imageTokens, QWEN3_LIMITS } from '../../../runtime/policy/actions/imageTokens.js';
import { UI_TARS_15_LIMITS } from '../../../runtime/policy/actions/coordinates.js';
import type { CheckRow } from '../../../runtime/protocol/types.js';
import { runChecks } from '../../../runtime/service/runChecks/index.js';
import { costLines, updateCost } from '../../../runtime/service/runChecks/cost.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../helpers/engine/server.js';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-checks-'));
});
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});
const servers: ReferenceServer[] = [];
afterEach(() => {
  for (const s of servers.splice(0)) s.close();
});

/** As many tokens as UI-TARS 1.5 has for a picture. */
const uiTarsTokens = (png: Uint8Array): number => {
  const v = new DataView(png.buffer, png.byteOffset, png.byteLength);
  return imageTokens({ width: v.getUint32(16), height: v.getUint32(20) }, UI_TARS_15_LIMITS);
};
async function start(o: ReferenceServerOptions = {}): Promise<ReferenceServer> {
  const s = await ReferenceServer.start({ ...o, policy: { imageTokens: uiTarsTokens, ...o.policy } });
  servers.push(s);
  return s;
}
type Over = { readonly vlm?: object; readonly remote?: object; readonly policy?: object; readonly file?: RunFile };
const configFor = (s: ReferenceServer, { vlm, remote, policy, file }: Over = {}): RunConfig =>
  parseRunFile({
    store: { dir: 'runs' },
    desktops: { screen: { width: 320, height: 200 } },
    ...file,
    policy: {
      kind: 'vlm',
      ...policy,
      vlm: { model: 'tiny', endpoints: [`${s.url}/v1`], imageToken: SPECIAL.imagePad, images: 2, ...vlm },
    },
    trainer: { remote: { url: s.url, ...remote } },
  });
const rowsOf = async (c: RunConfig, env: Record<string, string> = {}): Promise<readonly CheckRow[]> =>
  (await runChecks(c, dir, env)).checks;
/** The rows that are not ok, by the end of their name. */
const wrongOf = (rows: readonly CheckRow[]): string[] =>
  rows.filter((r) => !r.ok).map((r) => r.name.split(': ').at(-1)!);
const row = (rows: readonly CheckRow[], end: string): CheckRow => rows.find((r) => r.name.endsWith(end))!;

describe('checks of a run file', () => {
  it('pass on a server that does everything, and ask for nothing that stays', async () => {
    const s = await start(),
      rows = await rowsOf(configFor(s));
    expect(wrongOf(rows)).toEqual([]);
    expect(rows.map((r) => r.name.split(': ').at(-1))).toEqual([
      ...['reachable', 'model', 'generation', 'log-probs', 'token ids', 'image token', 'image size', 'images seen'],
      ...['adapters', 'health', 'key', 'model', 'language', 'left to the probe', 'disk for records'],
    ]);
    expect(row(rows, 'language').detail).toBe('protobuf');
    expect(row(rows, 'image token').detail).toBe('260, 2 pictures');
    const tokens = imageTokens({ width: 320, height: 200 }, UI_TARS_15_LIMITS);
    expect(row(rows, 'left to the probe').detail).toContain(
      `not looked at here: gradients, and the tokens of a picture (${tokens} for 320x200)`,
    );
    expect([s.count('/create_model'), s.count('/create_session'), s.count('/optim_step')]).toEqual([0, 0, 0]);
    expect(s.openAi.models()).toMatchObject({ data: [{ id: 'tiny' }] });
  });

  it('name a server that is not there, and check the others all the same', async () => {
    const s = await start(),
      gone = await start(),
      endpoints = [`${gone.url}/v1`, `${s.url}/v1`];
    gone.close();
    const rows = await rowsOf(configFor(s, { vlm: { endpoints } }));
    expect(wrongOf(rows)).toEqual(['reachable']);
    expect(rows[0]).toMatchObject({ name: expect.stringContaining(gone.url.slice(7)) as string, level: 'required' });
    expect(rows[0]!.remedy).toContain('policy.vlm.endpoints');
    const away = await rowsOf(configFor(s, { remote: { url: gone.url } }));
    expect(wrongOf(away)).toEqual(['reachable']);
    expect(away.find((r) => !r.ok)!.remedy).toContain('engine serve');
  });

  it('tell a key that is missing from one that is wrong, and send none that was not set apart', async () => {
    const s = await start({ apiKey: 'right' }),
      keyed = { vlm: { apiKeyEnv: 'DART_STUDIO_KEY' }, remote: { apiKeyEnv: 'DART_STUDIO_KEY' } };
    expect(wrongOf(await rowsOf(configFor(s, keyed), { DART_STUDIO_KEY: 'right' }))).toEqual([]);
    const none = await rowsOf(configFor(s));
    expect(wrongOf(none)).toEqual(['key', 'key']);
    expect(none.filter((r) => !r.ok).map((r) => r.remedy)).toEqual([
      expect.stringContaining('policy.vlm.apiKeyEnv'),
      expect.stringContaining('trainer.remote.apiKeyEnv'),
    ]);
    const unset = await rowsOf(configFor(s, keyed));
    expect(wrongOf(unset)).toEqual(['policy.vlm.apiKeyEnv', 'trainer.remote.apiKeyEnv']);
    const calls = s.calls.length,
      secret = { vlm: { apiKeyEnv: 'AWS_SECRET' }, remote: { apiKeyEnv: 'AWS_SECRET' } };
    expect(wrongOf(await rowsOf(configFor(s, secret), { AWS_SECRET: 'x' }))).toHaveLength(2);
    expect(s.calls).toHaveLength(calls);
  });

  it('see that pictures are dropped, though their tokens are there', async () => {
    const rows = await rowsOf(configFor(await start({ faults: ['drop-images'] })));
    expect(wrongOf(rows)).toEqual(['images seen']);
    expect(row(rows, 'images seen')).toMatchObject({
      level: 'required',
      detail: expect.stringContaining('dropped') as string,
    });
  });

  it('say which token stands for pictures where the run file names another', async () => {
    const rows = await rowsOf(configFor(await start(), { vlm: { imageToken: 151_655 } }));
    expect(wrongOf(rows)).toEqual(['image token']);
    expect(row(rows, 'image token').remedy).toBe('Set policy.vlm.imageToken to 260.');
  });

  it('see pictures that the server resizes in its own way: clicks would be off', async () => {
    const s = await start({ policy: { imageTokens: () => 12 } }),
      rows = await rowsOf(configFor(s));
    expect(wrongOf(rows)).toEqual(['image size']);
    expect(row(rows, 'image size')).toMatchObject({
      level: 'required',
      detail: expect.stringMatching(/^12 tokens .*click/) as string,
    });
    const relative = await rowsOf(configFor(s, { vlm: { coordinates: 'relative999' } }));
    expect(row(relative, 'image size').level).toBe('optional');
    const asQwen3 = imageTokens({ width: 320, height: 200 }, QWEN3_LIMITS),
      qwen3 = await start({ policy: { imageTokens: () => asQwen3 } });
    expect(row(await rowsOf(configFor(qwen3)), 'image size').remedy).toContain('coordinates to relative999');
    expect(wrongOf(await rowsOf(configFor(qwen3, { vlm: { coordinates: 'relative999' } })))).toEqual([]);
  });

  it('count pictures as the run does, by the limits of its run file', async () => {
    const options = { maxPixels: 20_000 },
      small = imageTokens({ width: 320, height: 200 }, { ...UI_TARS_15_LIMITS, minPixels: 3136, ...options }),
      s = await start({ policy: { imageTokens: () => small } }),
      run = (o: object): RunConfig => configFor(s, { remote: { options: o } });
    expect(wrongOf(await rowsOf(run({ minPixels: 3136, ...options })))).toEqual([]);
    const other = row(await rowsOf(run({ minPixels: 3136, maxPixels: 10_000 })), 'image size');
    expect(other.remedy).toContain('3136 to 10000 (');
    expect(updateCost(run({ minPixels: 3136, ...options }))!.tokens.image).toBe(small);
  });

  it('say how many pictures a prompt may have', async () => {
    const rows = await rowsOf(configFor(await start({ maxImages: 1 })));
    expect(wrongOf(rows)).toEqual(['generation']);
    expect(row(rows, 'generation').remedy).toContain('--limit-mm-per-prompt');
  });

  it('say which flag is missing where adapters cannot be loaded', async () => {
    const s = await start();
    s.next('/load_lora_adapter', { status: 404, body: { detail: 'Not Found' } });
    const off = row(await rowsOf(configFor(s)), 'adapters');
    expect(off).toMatchObject({ ok: false, level: 'required' });
    expect(off.remedy).toContain('VLLM_ALLOW_RUNTIME_LORA_UPDATING=True');
    s.next('/load_lora_adapter', { status: 400, body: { error: { message: 'LoRA is not enabled.' } } });
    expect(row(await rowsOf(configFor(s)), 'adapters').remedy).toContain('--enable-lora');
    s.next('/load_lora_adapter', { status: 200, body: {} });
    expect(row(await rowsOf(configFor(s)), 'adapters').detail).toContain('does not exist');
  });

  it('pass on an SGLang that gives what a run needs, and know it by itself', async () => {
    const s = await start({ sglang: {} }),
      engine = await start(),
      ran = (o: Over = {}): Promise<readonly CheckRow[]> =>
        rowsOf(configFor(s, { ...o, remote: { url: engine.url, ...o.remote } })),
      rows = await ran({ policy: { temperature: 0.5 } });
    // Its log-probs are those at 0.5. Those of a training server are not.
    expect(wrongOf(rows)).toEqual(['policy.temperature']);
    expect(row(rows, 'reachable').detail).toBe('SGLang 0.5.23: 1 model');
    expect(rows.map((r) => r.name.split(': ').at(-1))).toContain('scores');
    expect(s.count('/v1/load_lora_adapter')).toBe(0);
    // It answers to every name, so only its list counts.
    const named = row(await ran({ vlm: { model: 'another' } }), 'model');
    expect(named).toMatchObject({ ok: false, detail: 'it serves tiny, not another; the checks go on with that' });
    expect(named.remedy).toContain('SGLang: --served-model-name another');
  });

  it.each([
    [
      { lora: false },
      'adapters',
      /LoRA is not enabled/,
      /--enable-lora --max-lora-rank 16 --lora-target-modules q_proj/,
    ],
    [{ dp: 2 }, 'adapters', /fails when it is asked/, /--dp-size/],
  ] as const)('say what an SGLang lacks: %o', async (sglang, name, detail, remedy) => {
    const s = await start({ sglang }),
      engine = await start(),
      rows = await rowsOf(configFor(s, { remote: { url: engine.url } }));
    expect(wrongOf(rows)).toEqual([name]);
    expect(row(rows, name)).toMatchObject({
      level: 'required',
      detail: expect.stringMatching(detail) as string,
      remedy: expect.stringMatching(remedy) as string,
    });
  });

  it('name a server that is older than what is spoken, and warn of one that is newer', async () => {
    const old = await rowsOf(configFor(await start({ vllm: '0.9.2' })));
    expect(wrongOf(old)).toEqual(['version']);
    expect(row(old, 'version')).toMatchObject({
      level: 'required',
      detail: expect.stringMatching(/^it says that it is vLLM 0\.9\.2, and 0\.10\.2 is the first/) as string,
      remedy: expect.stringMatching(/^Update it to vLLM 0\.10\.2/) as string,
    });
    const sglang = await rowsOf(configFor(await start({ sglang: { version: '0.5.16' } })));
    expect(wrongOf(sglang).slice(0, 2)).toEqual(['version', 'token ids']);
    const fresh = await rowsOf(configFor(await start({ vllm: '1.0.0rc1' })));
    expect(wrongOf(fresh)).toEqual(['version']);
    expect(row(fresh, 'version')).toMatchObject({
      level: 'optional',
      detail: 'it says that it is vLLM 1.0.0rc1, newer than 0.32.0, the newest that this was made for',
      remedy: 'Update DART Studio, or use vLLM 0.10.2 to 0.32.0.',
    });
  });

  it('name an engine that cannot be read, with what it says it is', async () => {
    const s = await start(),
      engine = await start();
    engine.next('/client/config', { status: 200, body: { fwdbwd_max_chunk_len: 'many' } });
    const rows = await rowsOf(configFor(s, { remote: { url: engine.url } }));
    expect(row(rows, 'session').detail).toContain('the server says that it is 0.32.0');
    expect(row(rows, 'session').remedy).toContain('SDK 0.25 to 0.38');
  });

  it('say so where an SGLang does not score tokens', async () => {
    const s = await start({ sglang: {} });
    s.next('/generate', { status: 404, body: { detail: 'Not Found' } });
    const rows = await rowsOf(configFor(s));
    expect(wrongOf(rows).slice(0, 1)).toEqual(['scores']);
  });

  it('refuse all weights on a server that is not the engine', async () => {
    const s = await start(),
      engine = await start();
    expect(wrongOf(await rowsOf(configFor(s, { remote: { rank: 0 } })))).toEqual([]);
    const rows = await rowsOf(configFor(s, { remote: { rank: 0, url: engine.url } }));
    expect(wrongOf(rows)).toEqual(['weights']);
  });

  it('say of the preset dart what samples with all weights, and what to set for a pool of servers', async () => {
    const s = await start(),
      engine = await start(),
      pool = (remote: object): RunConfig =>
        parseRunFile({
          preset: 'dart',
          policy: { vlm: { model: 'tiny', endpoints: [`${s.url}/v1`] } },
          trainer: { remote: { url: engine.url, ...remote } },
        });
    const weights = row(await rowsOf(pool({})), 'weights');
    expect(weights.detail).toMatch(/only the engine of DART Studio .*83 tokens\/s at 7 B, measured.*SGLang/);
    expect(weights.remedy).toContain('To sample on a pool of vLLM or SGLang servers, set trainer.remote.rank to 16');
    const { 'trainer.remote.rank': rank, 'policy.vlm.endpoints': servers } = PRESET_SOURCES.dart!;
    // The preset's page and the remark on its run file say the same.
    for (const [, text] of [rank!, servers!]) expect(text).toContain(weights.remedy);
    const notes: string[] = [];
    parseRunFile({ preset: 'dart' }, {}, (n) => notes.push(n));
    expect(notes.join()).toContain(weights.remedy);
    // With a rank it is as the remedy says.
    expect(wrongOf(await rowsOf(pool({ rank: 16 })))).not.toContain('weights');
  });

  it('find log-probs that are not of the temperature sampled at', async () => {
    const rows = await rowsOf(configFor(await start(), { policy: { temperature: 0.5 } }));
    expect(wrongOf(rows)).toEqual(['policy.temperature', 'temperature']);
    expect(row(rows, ': temperature').remedy).toContain('processed_logprobs');
  });

  it('know a model by another name that the server answers to, and how long its prompts may be', async () => {
    const s = await start(),
      listed = { status: 200, body: { data: [{ id: 'base', parent: null, max_model_len: 900 }] } };
    s.next('/models', listed);
    const rows = await rowsOf(configFor(s));
    expect(rows[1]).toMatchObject({ ok: true, detail: 'tiny, listed as base' });
    expect(row(rows, 'context')).toMatchObject({
      ok: false,
      remedy: expect.stringContaining('--max-model-len 3072') as string,
    });
    // Every answer stays in the prompt of the next step: what is enough for the first is not for the last.
    const long = { file: { rollout: { maxSteps: 40 } } };
    for (const [context, level] of [
      [4096, 'optional'],
      [8192, undefined],
    ] as const) {
      s.next('/models', { status: 200, body: { data: [{ id: 'base', parent: null, max_model_len: context }] } });
      const of = row(await rowsOf(configFor(s, long)), 'context');
      expect(of.ok ? undefined : of.level).toBe(level);
      if (!of.ok) expect(of).toMatchObject({ detail: expect.stringContaining('step 40') as string });
    }
    s.next('/models', listed);
    const other = await rowsOf(configFor(s, { vlm: { model: 'another' } }));
    expect(other[1]).toMatchObject({ ok: false, level: 'required' });
  });

  it('name a model that is not served or not trained', async () => {
    const s = await start({ baseModel: 'other' }),
      rows = await rowsOf(configFor(s));
    expect(wrongOf(rows)).toEqual(['model', 'model']);
    expect(rows.filter((r) => !r.ok).map((r) => r.level)).toEqual(['required', 'required']);
    expect(rows.find((r) => r.name.startsWith('engine') && !r.ok)!.detail).toBe('it trains other, not tiny');
  });

  it.each([
    ['both', undefined, 'protobuf'],
    ['proto', { proto_compress_fwdbwd: true }, 'protobuf, compressed with zstd'],
    ['json', undefined, 'JSON: protobuf is refused, and the run falls back'],
    ['both', { proto_write_fwdbwd: false }, 'JSON, as it says itself'],
  ] as const)('tell the language: %s %o', async (speaks, config, detail) => {
    const s = await start({ speaks, ...(config ? { config } : {}) });
    expect(row(await rowsOf(configFor(s)), 'language')).toMatchObject({ ok: true, detail });
  });

  it('name an engine that is ill, or is none', async () => {
    const s = await start();
    s.next('/healthz', { status: 503, body: { detail: 'the torch thread is gone' } });
    expect(row(await rowsOf(configFor(s)), 'health').detail).toBe('503: the torch thread is gone');
    const rows = await rowsOf(configFor(s, { remote: { url: `${s.url}/v1` } }));
    expect(wrongOf(rows)).toEqual(['reachable']);
    expect(rows.find((r) => !r.ok)!.remedy).toContain('trainer.remote.url');
  });

  it('look for the folder of adapters where a server runs here', async () => {
    const s = await start();
    expect(wrongOf(await rowsOf(configFor(s, { vlm: { adapters: dir } })))).toEqual([]);
    const rows = await rowsOf(configFor(s, { vlm: { adapters: join(dir, 'nowhere') } }));
    expect(wrongOf(rows)).toEqual(['folder of adapters']);
    expect(row(rows, 'folder of adapters')).toMatchObject({ level: 'required' });
  });

  it('ask a model server whether it reads what the run will write, and leave nothing', async () => {
    const sees = await start(),
      apart = await start({ apart: true }),
      config = (s: ReferenceServer, store: string): RunConfig => {
        const c = configFor(s, { file: { store: { dir: store } }, remote: { url: undefined, engine: 'auto' } });
        expect(startsEngine(c)).toBe(true);
        return c;
      },
      folders = (rows: readonly CheckRow[]): CheckRow[] => rows.filter((r) => r.name.endsWith('folder of adapters'));
    expect(folders(await rowsOf(config(sees, 'sees')))).toMatchObject([
      { ok: true, detail: `it reads what this machine writes in ${dir}` },
    ]);
    expect(existsSync(join(dir, 'sees'))).toBe(false);
    // A folder above may not be what the server has.
    expect(folders(await rowsOf(config(apart, 'sees')))).toMatchObject([{ ok: false, level: 'optional' }]);
    expect(readdirSync(dir).filter((f) => f.startsWith('.'))).toEqual([]);
    mkdirSync(join(dir, 'kept'));
    expect(folders(await rowsOf(config(apart, 'kept')))).toMatchObject([
      { ok: false, level: 'required', remedy: expect.stringContaining('at the same path') as string },
    ]);
    expect(readdirSync(join(dir, 'kept'))).toEqual([]);
    // What is neither the one nor the other is not taken for a folder that is seen.
    const odd = await start();
    odd.next('/load_lora_adapter', { status: 404, body: { error: { message: 'No adapter found' } } });
    odd.next('/load_lora_adapter', { status: 500, body: { error: { message: 'Permission denied' } } });
    expect(folders(await rowsOf(config(odd, 'kept')))).toMatchObject([
      { ok: false, level: 'optional', detail: expect.stringContaining('Permission denied') as string },
    ]);
    // With an engine elsewhere, a folder of this path may be this machine's own.
    const named = configFor(apart, { vlm: { adapters: join(dir, 'kept') }, remote: { url: (await start()).url } });
    expect(folders(await rowsOf(named)).map((r) => [r.ok, r.level])).toEqual([
      [false, 'optional'],
      [true, 'required'],
    ]);
    for (const { openAi } of [sees, apart])
      expect(openAi.models()).toMatchObject({ data: [expect.objectContaining({ parent: null })] });
  });

  it('look for the folder of tasks', async () => {
    const s = await start(),
      tasks = (folder: string): RunFile => ({ tasks: { suite: 'folder', dir: folder } });
    expect(wrongOf(await rowsOf(configFor(s, { file: tasks(dir) })))).toEqual([]);
    expect(wrongOf(await rowsOf(configFor(s, { file: tasks(join(dir, 'nowhere')) })))).toEqual(['task folder']);
  });

  it('compare the free disk with what the budget will write', async () => {
    const s = await start(),
      rows = await rowsOf(configFor(s, { file: { budget: { rollouts: 1e12 } } }));
    expect(wrongOf(rows)).toEqual(['disk for records']);
    expect(row(rows, 'disk for records').detail).toMatch(/free; 1000000000000 rollouts take about/);
  });

  it('say of a folder of runs that it cannot be written, however much is free', async () => {
    const file = join(dir, 'file');
    writeFileSync(file, '');
    const { checks } = await runChecks(parseRunFile({ store: { dir: join(file, 'runs') } }), dir, {});
    expect(wrongOf(checks)).toEqual(['disk for records']);
    expect(row(checks, 'disk for records').detail).toContain('cannot be written');
  });

  it('have only the disk to look at where nothing remote acts', async () => {
    const { checks, update } = await runChecks(parseRunFile({}), dir, {});
    expect(wrongOf(checks)).toEqual([]);
    expect(checks.every((r) => r.name.startsWith('disk'))).toBe(true);
    expect(update).toBeUndefined();
  });

  it('roll a model out that is not trained with less', async () => {
    const s = await start(),
      openai = { baseUrls: [`${s.url}/v1/`], model: 'tiny', images: 1 };
    const { checks } = await runChecks(parseRunFile({ policy: { kind: 'openai', openai } }), dir, {});
    expect(wrongOf(checks)).toEqual([]);
    expect(checks.map((r) => r.name.split(': ').at(-1))).toContain('images seen');
  });
});

interface GpuRun {
  readonly commit: string;
  readonly device: string;
  readonly rows: readonly {
    readonly shape: string;
    readonly steps: number;
    readonly tokens_an_update: number;
    readonly s_an_update: number;
    readonly peak_gib_trained: number;
  }[];
}
const [newest] = (JSON.parse(readFileSync('test/engine/results/gpu.json', 'utf8')) as { readonly runs: [GpuRun] }).runs;

describe('the cost of an update', () => {
  it('is what was measured: 64 steps of the shape of 7 B, scored and trained, in 125 s', () => {
    const c = parseRunFile({
      preset: 'ui-tars-7b',
      policy: { vlm: { model: 'UI-TARS-1.5-7B', endpoints: ['http://127.0.0.1:1/v1'], maxTokens: 101 } },
      rollout: { maxSteps: 8 },
      curation: { dynamicRollouts: { max: 8 }, highEntropy: { enabled: false } },
      trainer: { batchGroups: 1, remote: { url: 'http://127.0.0.1:1' } },
    });
    const u = updateCost(c)!,
      run = newest.rows.find((r) => r.shape === 'Qwen2.5-VL-7B')!;
    expect([u.rollouts, u.steps, u.passes]).toEqual([8, 64, 1.5]);
    expect(u.tokens).toMatchObject({ image: 1196, images: 5, step: run.tokens_an_update / run.steps });
    expect(u.seconds!.value).toBe(Math.round((64 / run.steps) * run.s_an_update));
    for (const said of ['measured', newest.device, newest.commit, 'test/engine/results/gpu.json'])
      expect(u.seconds!.source).toContain(said);
    const trainedOnly = { ...c, trainer: { ...c.trainer, remote: { ...c.trainer.remote!, loss: 'server' as const } } };
    expect(updateCost(trainedOnly)!.seconds!.value).toBe(Math.round(((64 / run.steps) * run.s_an_update) / 1.5));
  });
  it('counts the passes that only score, and the share of steps that is kept', () => {
    const dart = updateCost(parseRunFile({ preset: 'dart' }))!;
    expect([dart.groups, dart.rollouts, dart.steps]).toEqual([8, 64, 64 * 30 * 0.8]);
    expect(dart.tokens.image).toBe(2691);
    // One that trains, one that scores before it, one of the reference.
    expect(dart.passes).toBe(2);
  });
  it('has no seconds where no figure is known', () => {
    expect(updateCost(parseRunFile({ preset: 'ui-tars-7b' }))!.seconds).toBeDefined();
    expect(updateCost(parseRunFile({ preset: 'qwen3-vl-8b' }))!.seconds).toBeDefined();
    const other = { preset: 'qwen3-vl-8b', policy: { vlm: { model: 'Qwen/Qwen3-VL-32B' } } };
    expect(updateCost(parseRunFile(other))!.seconds).toBeUndefined();
    expect(costLines(updateCost(parseRunFile(other))!).join('\n')).toContain('no figure is known');
  });
  it('has the memory of one GPU: measured of an adapter, calculated where all weights are trained', () => {
    const dart = updateCost(parseRunFile({ preset: 'dart' }))!,
      without = updateCost(parseRunFile({ preset: 'dart', trainer: { klBeta: 0 } }))!,
      other = { preset: 'dart', policy: { vlm: { model: 'x/Other-3B' } } };
    // 8.29 B parameters; the reference of the KL term is 2 bytes of each.
    expect(dart.memory).toMatchObject({ gib: Math.round((8_292_166_656 * 30) / 2 ** 30), atLeast: true });
    expect(without.memory!.gib).toBe(Math.round((8_292_166_656 * 28) / 2 ** 30));
    expect(updateCost(parseRunFile(other))!.memory!.gib).toBe(Math.round((3e9 * 30) / 2 ** 30));
    expect(costLines(dart).join('\n')).toMatch(/memory +at least 232 GiB if it is one GPU/);
    const adapter = updateCost(parseRunFile({ preset: 'ui-tars-7b' }))!,
      [shape] = newest.rows.filter((r) => r.shape === 'Qwen2.5-VL-7B');
    expect(adapter.memory).toMatchObject({ gib: shape!.peak_gib_trained, atLeast: false });
    expect(costLines(adapter).join('\n')).toMatch(
      /memory +about 25\.5 GiB of one GPU at the peak of training \(measured/,
    );
    const unknown = updateCost(parseRunFile({ preset: 'ui-tars-7b', policy: { vlm: { model: 'mine' } } }))!;
    expect(costLines(unknown).join('\n')).toMatch(/memory +no figure is known/);
  });
  it('says where more desktops share one engine than their time allows', () => {
    const slow = (file: RunFile): ReturnType<typeof updateCost> => updateCost(parseRunFile(file)),
      dart = slow({ preset: 'dart' })!;
    // 180 desktops, 100 tokens each at 57.1 tokens/s.
    expect(dart.slow).toMatchObject({ desktops: 180, decision: 315, rollout: 9457, limit: 1800, most: 34 });
    expect(costLines(dart).join('\n')).toMatch(
      /Set desktops\.count to 34 or less, rollout\.taskTimeoutS to 9457 or more/,
    );
    expect(slow({ preset: 'dart', desktops: { count: 34 } })!.slow).toBeUndefined();
    expect(slow({ preset: 'dart', desktops: { count: 35 } })!.slow).toBeDefined();
    // A pool acts.
    const pool = { vlm: { model: 'UI-TARS-1.5-7B', endpoints: ['http://127.0.0.1:8000/v1'] } };
    expect(slow({ preset: 'dart', policy: pool, trainer: { remote: { rank: 16 } } })!.slow).toBeUndefined();
    for (const preset of ['ui-tars-7b', 'qwen3-vl-8b', 'osworld'] as const)
      expect(slow({ preset })!.slow).toBeUndefined();
  });
  it('is more than that of an adapter where all weights are trained', () => {
    const whole = updateCost(parseRunFile({ preset: 'dart' }))!,
      adapter = updateCost(parseRunFile({ preset: 'dart', trainer: { remote: { rank: 16 } } }))!;
    expect(whole.seconds).toEqual({ ...adapter.seconds!, atLeast: true });
    expect(costLines(adapter).join('\n')).toMatch(/time +about \d/);
    expect(costLines(whole).join('\n')).toMatch(/time +more than \d.* training all weights takes longer/);
  });
});
