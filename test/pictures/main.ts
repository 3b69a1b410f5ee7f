import { cp } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Cockpit } from '../helpers/workbench/cockpit.js';
import { whyNoWorkbench } from '../helpers/workbench/rig.js';
import { pictures } from '../helpers/workbench/ui.js';

/** README.md's pictures, as a person sees this version: the dashboard in dark, the inspector in light. */
const target = 'media/readme';

const { values } = parseArgs({ options: { run: { type: 'string' } } }),
  run = values.run === undefined ? undefined : resolve(values.run),
  lacking = whyNoWorkbench('latest');
if (lacking) {
  console.error(`There is no workbench to take pictures in: ${lacking}.`);
  process.exit(1);
}
const c = await Cockpit.start({
  which: 'latest',
  ...(run === undefined
    ? {}
    : { prepare: (folder) => cp(run, join(folder, 'runs', basename(run)), { recursive: true }) }),
});
try {
  await c.ui.openContainer();
  if (run === undefined) await c.ui.palette('DART Studio: Open Sample Run');
  else {
    await c.ui.palette('DART Studio: Start Runtime');
    await c.w.host.command('dartStudio.openDashboard', join(c.w.folder, 'runs', basename(run)));
  }
  const dashboard = await c.ui.webview('dashboard', { timeoutMs: 60_000 });
  await dashboard.locator('#success .uplot canvas').first().waitFor({ timeout: 60_000 });
  await dashboard.locator('.fact', { hasText: 'Machine' }).waitFor();
  await c.ui.section('Trajectories').locator('.monaco-list-row').first().waitFor();
  await c.w.page.screenshot({ path: join(target, 'dashboard.png') });

  await c.setTheme('Light Modern');
  await c.ui.palette('DART Studio: Open Trajectory Table');
  const table = await c.ui.webview('table');
  await table.getByRole('textbox', { name: /Search/ }).fill('probe/final');
  const success = table.locator('.tb-row', { hasText: /success/i }).first();
  await success.filter({ hasText: 'evaluation' }).waitFor();
  await success.click();
  const inspector = await c.ui.webview('inspector');
  await inspector.locator('.ds-surface img').waitFor();
  await pictures(inspector);
  await c.w.page.screenshot({ path: join(target, 'inspector.png') });
  console.log(`${target}/dashboard.png and inspector.png are of this version. Look at them before you commit them.`);
} finally {
  await c.stop();
}
