import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { connectEngine, imageTag, readRecipe } from '../../../runtime/cluster/imageBuild.js';
import { manifests } from '../../../runtime/cluster/providers/kubernetes/manifests.js';
import { buildRuntimeImage } from '../../../runtime/cluster/providers/kubernetes/runtimeImage.js';
import { parseRunFile } from '../../../runtime/config/index.js';
import { engineHere } from '../../helpers/cluster/engine.js';
import { ensureBundle } from '../../helpers/run/cli.js';

const engine = await engineHere();
if (!engine) console.log("skipped: the runtime's image (no Docker engine answers here)");

interface Check {
  readonly what: string;
  readonly ok: boolean;
}

/** The image that the Job of `kubernetes manifests --job` starts, with no more rights than the Job gives it. */
describe.skipIf(!engine)("the runtime's image", () => {
  let image: string;
  const build = (base?: string): Promise<string> =>
    buildRuntimeImage({
      bundle: resolve('dist/runtime.js'),
      base,
      onProgress: () => undefined,
      signal: new AbortController().signal,
    });
  const run = async (...args: string[]): Promise<string> => {
    const rights = ['--rm', '--network', 'none', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];
    const { stdout } = await promisify(execFile)('docker', ['run', ...rights, ...args], { maxBuffer: 16 << 20 });
    return stdout;
  };
  beforeAll(async () => {
    ensureBundle();
    image = await build();
  });

  it('is built once for the same installation', async () => {
    expect(await build()).toBe(image);
    expect(image).toMatch(/^dart-studio\/runtime:[0-9a-f]{16}$/);
    const { Config } = await connectEngine().getImage(image).inspect();
    expect(Config.User).toBe('1000:1000');
  });

  it('has what a run needs: ONNX Runtime, the recipes of desktop images, a home that it may write', async () => {
    const doctor = run(image, 'doctor', '--json').catch((e: { stdout: string }) => e.stdout),
      checks = JSON.parse(await doctor) as Check[];
    expect(checks.find((c) => c.what === 'ONNX Runtime')).toMatchObject({ ok: true });
    const status = await run(image, 'desktop', 'status', '--json').catch((e: { stdout: string }) => e.stdout),
      { built } = JSON.parse(status) as { built: { tag: string } };
    expect(built.tag).toBe(imageTag(await readRecipe()));
    expect(await run('--entrypoint', 'sh', image, '-c', 'id -u; touch ~/x; ls ~')).toBe('1000\nx\n');
  });

  it('runs as the user that the Job names', () => {
    const { desktops } = parseRunFile({}),
      job = manifests({ desktops, job: { image, runFile: '{}' } }).find((o) => 'kind' in o && o.kind === 'Job');
    expect(job).toMatchObject({
      spec: {
        template: {
          spec: {
            securityContext: { runAsNonRoot: true, runAsUser: 1000, fsGroup: 1000 },
            containers: [
              {
                envFrom: [{ secretRef: { name: 'dart-studio-keys', optional: true } }],
                securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
              },
            ],
          },
        },
      },
    });
  });

  it('says what a base that does not fit lacks', async () => {
    await expect(build('debian:bookworm-slim')).rejects.toMatchObject({
      kind: 'desktop.image',
      error: { remedy: expect.stringContaining('Node.js 20') as string },
    });
    await expect(build('registry.invalid/none:1')).rejects.toMatchObject({ kind: 'desktop.image' });
  });
});
