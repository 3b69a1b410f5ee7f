import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { imageTokens } from '../../../runtime/policy/actions/imageTokens.js';
import { UI_TARS_15_LIMITS } from '../../../runtime/policy/actions/coordinates.js';
import { SPECIAL } from '../../helpers/engine/policy.js';
import { ReferenceServer, type ReferenceServerOptions } from '../../helpers/engine/server.js';
import { cli, endAll, ensureBundle } from '../../helpers/run/cli.js';

let dir: string;
beforeAll(async () => {
  ensureBundle();
  dir = await mkdtemp(join(tmpdir(), 'dart-doctor-'));
});
afterEach(endAll);
afterAll(() => rm(dir, { recursive: true, force: true }));

interface Report {
  readonly ok: boolean;
  readonly checks: readonly { what: string; ok: boolean; needed: boolean; found: string; remedy?: string }[];
  readonly notes: readonly string[];
  readonly update: { readonly steps: number; readonly tokens: { readonly image: number } };
}
async function withServer<T>(
  o: ReferenceServerOptions,
  file: object,
  use: (run: string, s: ReferenceServer) => Promise<T>,
): Promise<T> {
  const s = await ReferenceServer.start({
      ...o,
      policy: { imageTokens: () => imageTokens({ width: 640, height: 400 }, UI_TARS_15_LIMITS) },
    }),
    run = join(dir, 'run.json');
  await writeFile(
    run,
    JSON.stringify({
      preset: 'ui-tars-7b',
      desktops: { screen: { width: 640, height: 400 } },
      policy: { vlm: { model: 'tiny', endpoints: [`${s.url}/v1`], imageToken: SPECIAL.imagePad } },
      trainer: { ...file, remote: { url: s.url } },
    }),
  );
  try {
    return await use(run, s);
  } finally {
    s.close();
  }
}

describe('doctor --run, as a command', () => {
  it('tells of every server, and what an update costs', async () => {
    await withServer({}, { klBeta: 0.1 }, async (run) => {
      const r = await cli('doctor', '--run', run, '--json'),
        report = JSON.parse(r.stdout) as Report;
      const remote = report.checks.filter((c) => /^(model server|engine) /.test(c.what));
      expect(remote).toHaveLength(14);
      expect(remote.filter((c) => / left to the probe$/.test(c.what))).toHaveLength(1);
      expect(remote.filter((c) => !c.ok)).toEqual([]);
      expect(report.ok).toBe(!report.checks.some((c) => c.needed && !c.ok));
      expect(r.code).toBe(report.ok ? 0 : 1);
      expect(report.update).toMatchObject({ steps: 231, tokens: { image: 322, images: 5 } });
      expect(report.notes).toEqual([expect.stringContaining('trainer.klBeta is 0.1')]);
      const words = await cli('doctor', '--run', run);
      expect(words.stdout).toMatch(
        /What an update costs\n {2}rollouts +4 groups, 24 rollouts, 231 trained steps at most\n/,
      );
    });
  });

  it('ends with 1 and a remedy where a run could not start', async () => {
    await withServer({ faults: ['drop-images'] }, {}, async (run) => {
      const r = await cli('doctor', '--run', run);
      expect(r.code).toBe(1);
      expect(r.stdout).toMatch(
        /✗ model server 127\.0\.0\.1:\d+\/v1: images seen .*pictures are dropped\n +→ Serve the model/,
      );
    });
  });

  it('names a run file that is not there, or wrong', async () => {
    const none = await cli('doctor', '--run', join(dir, 'nowhere.json'));
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('nowhere.json cannot be read') as string]);
    const wrong = join(dir, 'wrong.json');
    await writeFile(wrong, '{ "policy": { "kind": "vlm" } }');
    const r = await cli('doctor', '--run', wrong);
    expect(r.code).toBe(2);
    expect(r.stderr).toContain('trainer.remote: required because policy.kind is "vlm"');
  });
});

describe('engine probe --json, as a command', () => {
  interface Probed {
    readonly ok: boolean;
    readonly checks: readonly { name: string; ok: boolean; needed: boolean; detail: string }[];
  }
  const probe = async (o: ReferenceServerOptions): Promise<{ code: number | null; report: Probed }> => {
    const s = await ReferenceServer.start(o);
    try {
      const { code, stdout } = await cli('engine', 'probe', s.url, '--rank', '4', '--sampling', '--json');
      return { code, report: JSON.parse(stdout) as Probed };
    } finally {
      s.close();
    }
  };

  it('ends with 0 for a server that is right, and says what it saw', async () => {
    const { code, report } = await probe({});
    expect(report.checks.filter((c) => !c.ok)).toEqual([]);
    expect({ code, ok: report.ok }).toEqual({ code: 0, ok: true });
    expect(report.checks.map((c) => c.name)).toEqual(
      expect.arrayContaining(['connection', 'scoring', 'carrier', 'images', 'restore', 'adapter', 'refusals']),
    );
    for (const c of report.checks) expect(c).toMatchObject({ ok: true, detail: expect.stringMatching(/\w/) as string });
  });

  it('ends with 1 for one that does something else with gradients, and names it', async () => {
    const { code, report } = await probe({ faults: ['mean-over-request'] });
    expect({ code, ok: report.ok }).toEqual({ code: 1, ok: false });
    expect(report.checks.find((c) => c.name === 'carrier')).toMatchObject({
      ok: false,
      needed: true,
      detail: expect.stringContaining('no loss of this server carries a gradient') as string,
    });
  });

  it('ends with 1 and a remedy where no server is', async () => {
    const s = await ReferenceServer.start();
    s.close();
    const r = await cli('engine', 'probe', s.url, '--json');
    expect(r).toMatchObject({ code: 1, stdout: '' });
    expect(r.stderr).toContain(`No training server answers at ${s.url}: connect ECONNREFUSED`);
    expect(r.stderr).toContain('engine serve --model MODEL');
  });
});
