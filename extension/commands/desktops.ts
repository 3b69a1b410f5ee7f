/** Commands of the Desktops view, and the desktop image. */
import * as methods from '../../runtime/protocol/methods.js';
import type { DesktopRow } from '../../runtime/protocol/types.js';
import { commands } from '../ids.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showWarningMessage } from '../toasts.js';
import { nodeOf } from '../views/nodes.js';
import { workWord } from '../views/rows.js';
import { t } from '../words.js';
import type { Actions } from './action.js';
import { choose, working } from './ask.js';

type Ids = typeof commands.watchDesktop | typeof commands.restartDesktop | typeof commands.buildDesktop;

export const desktopCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.watchDesktop]: { doing: t('watch the desktop'), run: (arg) => watch(s, arg) },
  [commands.restartDesktop]: { doing: t('restart the desktop'), run: (arg) => restart(s, arg) },
  [commands.buildDesktop]: { doing: t('build the desktop image'), run: () => build(s) },
});

async function pick(s: StudioContext, arg: unknown, title: string): Promise<string | undefined> {
  s.requireTrust();
  const named = typeof arg === 'string' && arg !== '' ? arg : nodeOf(arg, 'desktop')?.row.desktop;
  if (named !== undefined) return named;
  await s.attach();
  const rows: readonly DesktopRow[] =
    s.client.state === 'ready' ? (await s.client.request(methods.listDesktops, {})).desktops : [];
  if (rows.length === 0) {
    void showInformationMessage(t('No desktop is running. Desktops start with a training run or a demonstration.'));
    return undefined;
  }
  return rows.length === 1
    ? rows[0]?.desktop
    : choose(
        title,
        rows.map((d) => ({
          label: d.desktop,
          description: workWord(d.state),
          detail: d.instruction || undefined,
          value: d.desktop,
        })),
      );
}
export async function watch(s: StudioContext, arg: unknown, o: { readonly aside?: boolean } = {}): Promise<void> {
  const desktop = await pick(s, arg, t('Watch Desktop'));
  if (desktop === undefined) return;
  const held = s.sessions.of(desktop);
  s.panels.show(
    { kind: 'live', desktop, session: held && s.sessions.isMine(held.session) ? held.session : undefined },
    o,
  );
}
async function restart(s: StudioContext, arg: unknown): Promise<void> {
  const desktop = await pick(s, arg, t('Restart Desktop'));
  if (desktop === undefined) return;
  const yes = t('Restart');
  const answer = await showWarningMessage(
    t('Restart desktop {0}?', desktop),
    {
      modal: true,
      detail: t('Its rollout ends with an error, has no reward and is retried; the desktop is replaced.'),
    },
    yes,
  );
  if (answer === yes) await s.client.request(methods.restartDesktop, { desktop });
}
/** The image to build; asked only where there are several. */
async function pickImage(s: StudioContext): Promise<string | undefined> {
  await s.ensureRuntime();
  const { images } = await s.client.request(methods.listImages, {});
  return images.length === 1
    ? images[0]?.name
    : choose(
        t('Build Desktop Image'),
        images.map((i) => ({ label: i.title, description: i.name, detail: i.description, value: i.name })),
      );
}
async function build(s: StudioContext): Promise<void> {
  s.requireTraining();
  const { provider } = s.settings();
  const image = await pickImage(s);
  if (image === undefined) return;
  const made = await working(t('Building the desktop image'), async (say, signal) => {
    await s.ensureRuntime(signal);
    let share = 0;
    const off = s.client.on(methods.buildProgress, (p) => {
      say.report({
        message: p.message,
        increment: p.fraction === undefined ? undefined : 100 * Math.max(0, p.fraction - share),
      });
      share = p.fraction ?? share;
    });
    try {
      return await s.client.request(methods.buildDesktop, { provider, image }, signal);
    } finally {
      off();
    }
  });
  s.setMachine('ok');
  const start = t('Start Training…');
  void showInformationMessage(t('The desktop image is ready ({0}: {1}).', made.provider, made.what), start).then(
    (picked) => {
      if (picked === start) s.run(commands.startTraining);
    },
  );
}
