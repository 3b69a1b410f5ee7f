import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { strFromU8, unzipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { connectEngine, ensureImage } from '../../runtime/cluster/imageBuild.js';
import { engineHere } from '../helpers/cluster/engine.js';
import { whyNoLocalDesktops } from '../helpers/cluster/desktops.js';
import { isAlive } from '../helpers/machine/processes.js';
import { Cockpit, tinyRun } from '../helpers/workbench/cockpit.js';
import { fakeKubectl } from '../helpers/kubernetes/fakeKubectl.js';
import { flowIn, Given } from '../helpers/workbench/given.js';
import { runtimeIn } from '../helpers/workbench/runtimeIn.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { saveAs } from '../helpers/workbench/saveAs.js';
import { until } from '../helpers/workbench/workbench.js';

/**
 * The commands of the palette that the other flows pass by: run files, the machine, pause, evaluation, diagnostics, the
 * end of the runtime. Each flow states what it takes as given.
 */
const engine = await engineHere(),
  noLocal = await whyNoLocalDesktops(),
  provider = engine ? 'docker' : 'local';
const missing = whyNoWorkbench('latest') ?? (provider === 'local' ? noLocal : undefined);
if (missing) console.warn(`skipped: commands of the palette (${missing})`);

describe.skipIf(missing !== undefined)(`VS Code, current, commands on ${provider} desktops`, () => {
  let c: Cockpit, given: Given;
  const bin = mkdtempSync(join(tmpdir(), 'dart-bin-'));
  beforeAll(async () => {
    if (provider === 'docker') await ensureImage(connectEngine());
    c = await Cockpit.start({
      which: 'latest',
      settings: {
        'dartStudio.desktops.provider': provider,
        'dartStudio.kubernetes.kubectl': join(bin, 'kubectl'),
      },
      files: { 'tiny.dart-run.json': tinyRun(provider) },
    });
    given = new Given(c);
  });
  afterAll(async () => {
    rmSync(bin, { recursive: true, force: true });
    await c?.stop();
  });
  const flow = flowIn(
    () => given,
    (name) => c.picture(name),
  );
  const quickInput = () => c.w.page.locator('.quick-input-widget');
  const state = async (word: string): Promise<void> => {
    await (
      await c.ui.webview('dashboard', { timeoutMs: 60_000 })
    )
      .locator('.state', { hasText: word })
      .waitFor({ timeout: 60_000 });
  };
  /** What VS Code finds wrong in a file of the workspace. */
  const problems = (name: string): Promise<readonly string[]> =>
    c.w.host.run(
      (v, n) =>
        v.languages
          .getDiagnostics()
          .filter(([uri]) => uri.path.endsWith(n))
          .flatMap(([, d]) => d.map((x) => x.message)),
      name,
    );

  flow('a new run file: the editor knows what may stand in it', async () => {
    const file = join(c.w.folder, 'dart-run.json');
    await c.ui.palette('DART Studio: New Run File');
    await c.ui.pick('Quick start');
    await saveAs(c.w.page, 'New Run File', file);
    const active = (): Promise<string | undefined> => c.w.host.run((v) => v.window.activeTextEditor?.document.uri.path);
    await until(async () => (await active())?.endsWith('/dart-run.json') ?? false, 'it is open, and has the focus');
    const text = readFileSync(file, 'utf8');
    await c.w.host.run(async (v) => {
      const e = v.window.activeTextEditor!,
        at = e.document.getText().indexOf('{') + 1;
      await e.edit((b) => {
        b.insert(e.document.positionAt(at), '\n  "desktops_": 1,');
      });
    });
    await until(
      async () => (await problems('dart-run.json')).some((p) => p.includes('desktops_')),
      'a key that does not exist is marked',
    );
    await c.w.host.run((v) => v.commands.executeCommand('undo'));
    await until(async () => (await problems('dart-run.json')).length === 0, 'the file as it was made has no problem');
    expect(readFileSync(file, 'utf8')).toBe(text);
  });

  flow('the machine is checked, and the desktop built from there', async () => {
    await c.ui.palette('DART Studio: Check This Machine');
    await quickInput().filter({ hasText: 'This Machine' }).waitFor({ timeout: 60_000 });
    expect(await quickInput().locator('input').getAttribute('placeholder')).toContain('Training can run here');
    await c.picture('machine');
    await c.ui.pick('Build Desktop Image');
    await c.ui.pick('Desk', { title: 'Build Desktop Image' });
    await c.ui.told('The desktop image is ready', 240_000);
  });

  flow('terminals know the command that messages name', async () => {
    const said = join(c.w.folder, 'said.txt');
    await c.w.host.run((v, file) => {
      const terminal = v.window.createTerminal('command');
      terminal.show();
      terminal.sendText(`dart-studio --version > ${file}`);
    }, said);
    await until(
      () => existsSync(said) && /^\d+\.\d+\.\d+\n$/.test(readFileSync(said, 'utf8')),
      'the terminal ran it',
      60_000,
    );
    await c.picture('terminal');
    await c.w.host.run((v) => v.window.terminals.forEach((x) => x.dispose()));
  });

  flow('a run is paused and goes on; its desktop is watched', async () => {
    await given.training();
    await given.dashboard();
    await state('Running');
    await c.ui.palette('DART Studio: Pause');
    await state('Paused');
    await until(async () => /paused/i.test(await c.ui.status.innerText()), 'the status bar says so');
    await c.picture('paused');
    await c.ui.palette('DART Studio: Resume');
    await state('Running');
    // With one alone there is nothing to ask.
    await given.sideBar('Desktops');
    await until(async () => (await c.ui.rows('Desktops')).length === 2, 'both desktops are listed');
    await c.ui.palette('DART Studio: Watch Desktop');
    await c.ui.pick(/docker-|local-|desktop-/);
    const live = await c.ui.webview('live', { timeoutMs: 60_000 });
    await until(
      () =>
        live.evaluate<boolean>(
          "(() => { const x = document.querySelector('.live-canvas'); return !!x && x.width > 0 && x.getContext('2d').getImageData(0, 0, x.width, x.height).data.some((v, i) => i % 4 < 3 && v > 0); })()",
        ),
      'its picture is drawn',
    );
    await c.picture('watched');
  });

  flow('a runtime that trains is not restarted without asking', async () => {
    await given.training();
    const { pid } = c.daemon!;
    await c.ui.palette('DART Studio: Restart Runtime');
    const dialog = c.ui.dialog();
    await dialog.filter({ hasText: 'This stops the active run' }).waitFor();
    await c.picture('restart');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
    expect(c.daemon?.pid).toBe(pid);
    expect(isAlive(pid)).toBe(true);
  });

  flow('a checkpoint is evaluated', async () => {
    await given.trained();
    await c.ui.palette('DART Studio: Evaluate Checkpoint');
    await c.ui.pick('tiny');
    await c.ui.pick('newest');
    await c.ui.pick('Training seeds');
    await c.ui.told(/Checkpoint \d+: \d of 2 episodes succeeded/, 300_000);
    await c.picture('evaluated');
  });

  flow('diagnostics are collected, and name nobody', async () => {
    await given.runtime();
    const file = join(c.w.folder, 'diagnostics.zip');
    await c.ui.palette('DART Studio: Collect Diagnostics');
    await saveAs(c.w.page, 'Collect Diagnostics', file);
    await c.ui.told('Saved diagnostics.zip');
    const parts = unzipSync(readFileSync(file)),
      { token } = c.daemon!,
      home = join(c.w.dir, 'home');
    expect(Object.keys(parts)).toEqual(expect.arrayContaining(['editor.json', 'runtime/daemon.log']));
    for (const [name, bytes] of Object.entries(parts)) {
      expect(strFromU8(bytes), name).not.toContain(token);
      expect(strFromU8(bytes), name).not.toContain(home);
    }
  });

  flow('a run folder from elsewhere is opened', async () => {
    await given.trained();
    const elsewhere = join(c.w.dir, 'elsewhere'),
      run = join(elsewhere, 'brought');
    mkdirSync(elsewhere, { recursive: true });
    cpSync(given.runFolder!, run, { recursive: true });
    writeFileSync(join(elsewhere, 'readme.txt'), 'not a run');
    await c.w.host.run((v, dir) => {
      void v.commands.executeCommand('dartStudio.openRunFolder', v.Uri.file(dir));
    }, run);
    await state('Stopped');
    await until(
      async () => (await c.ui.rows('Runs')).length === c.runs.length + 1,
      'it is listed beside those of the workspace',
    );
    await c.w.host.run(
      (v, dir) => {
        void v.commands.executeCommand('dartStudio.openRunFolder', v.Uri.file(dir));
      },
      join(c.w.folder, 'runs', basename(given.runFolder!), 'journal'),
    );
    await c.ui.told('holds no run');
  });

  flow('the window attaches to a runtime in a cluster, comes back to it after a cut, and goes home', async () => {
    await given.trained();
    // What stands for the pod: a runtime with a folder of its own, which this window knows nothing of.
    const far = join(c.w.dir, 'far'),
      pod = 'dart-studio-train-x7k2p';
    cpSync(given.runFolder!, join(far, 'runs', 'far-away'), { recursive: true });
    writeFileSync(join(far, 'runs', 'far-away', 'label.json'), JSON.stringify({ name: 'far away' }));
    const runtime = await runtimeIn(far, c.bundle);
    try {
      const kubectl = fakeKubectl(bin, { contexts: ['there', 'elsewhere'], pods: [pod], storage: far });
      await c.ui.palette('DART Studio: Attach to Runtime');
      await c.ui.pick('Pod of a cluster');
      await c.ui.pick('there');
      await c.ui.enter('Namespace of the Job');
      await c.ui.pick(pod);
      await c.ui.told(`Attached to ${pod}`);
      expect(kubectl.asked().every((x) => x.asked[0] === 'config' || x.asked.includes('--context=there'))).toBe(true);
      await until(async () => (await c.ui.status.innerText()).includes('x7k2p'), 'the status bar says to what');
      await until(
        async () => (await c.ui.rows('Runs')).map((r) => r.slice(0, 8)).join() === 'far away',
        'the runs of that runtime are listed, and none of here',
      );
      await c.picture('attached');
      process.kill(kubectl.forwards().at(-1)!, 'SIGKILL');
      await until(() => kubectl.forwards().length === 2, 'the port is forwarded anew');
      await c.ui.palette('DART Studio: Open Dashboard');
      await state('Stopped');
      // What is of this machine says so, and touches nothing there.
      await c.ui.palette('DART Studio: Restart Runtime');
      await c.ui.told(`attached to ${pod}`);
      expect(isAlive(runtime.pid!)).toBe(true);
      await c.ui.palette('DART Studio: Detach from Runtime');
      await until(() => kubectl.forwards().every((p) => !isAlive(p)), 'nothing is forwarded any more');
      await until(async () => (await c.ui.rows('Runs')).some((r) => r.startsWith('tiny')), 'the runs of here are back');
      await until(async () => !(await c.ui.status.innerText()).includes('x7k2p'), 'the status bar says so');
    } finally {
      runtime.kill('SIGKILL');
    }
  });

  flow('the runtime is stopped; all data is deleted, and the runs of the workspace stay', async () => {
    await given.trained();
    const { pid } = c.daemon!,
      run = given.runFolder;
    await c.ui.palette('DART Studio: Stop Runtime');
    await until(() => !isAlive(pid), 'the daemon has ended', 60_000);
    await until(
      async () => /These runs are listed from their folders/.test(await c.ui.section('Runs').innerText()),
      'the view says so',
    );
    await until(
      async () => (await c.ui.rows('Runs')).some((r) => /^tiny\b.*(stopped|finished)/.test(r)),
      'the run is listed with what became of it',
    );
    await c.ui.palette('DART Studio: Delete All Data');
    const dialog = c.ui.dialog();
    await dialog.filter({ hasText: 'Delete all DART Studio data' }).waitFor();
    await c.picture('delete');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await c.ui.told('was deleted');
    expect(existsSync(join(c.storage, 'daemon.json'))).toBe(false);
    expect(existsSync(join(run!, 'run.json'))).toBe(true);
  });
});
