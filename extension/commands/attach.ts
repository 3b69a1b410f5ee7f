/** A window talks to a runtime elsewhere: the Job of a cluster, or what somebody forwarded to this machine. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { forwardedRuntime, loopbackPort, recordFrom } from '../daemon/forwarded.js';
import {
  contextsArguments,
  isContext,
  isNamespace,
  kubectl,
  parsePods,
  podsArguments,
  type Place,
} from '../daemon/kubectl.js';
import { PodRuntime } from '../daemon/podRuntime.js';
import type { RemoteRuntime } from '../daemon/remote.js';
import { DaemonError } from '../daemon/types.js';
import { RUNTIME_POD } from '../../runtime/protocol/runtimePod.js';
import { commands } from '../ids.js';
import { picturesOf } from '../panels/remotePictures.js';
import { settings } from '../settings.js';
import type { StudioContext } from '../studioContext.js';
import { showInformationMessage, showInputBox } from '../toasts.js';
import { span, t } from '../words.js';
import type { Actions } from './action.js';
import { choose, working } from './ask.js';

type Ids = typeof commands.attachRuntime | typeof commands.detachRuntime;

export const attachCommands = (s: StudioContext): Actions<Ids> => ({
  [commands.attachRuntime]: { doing: t('attach to the runtime'), run: () => attach(s) },
  [commands.detachRuntime]: {
    doing: t('detach from the runtime'),
    run: async () => {
      const { remote } = s.client;
      if (!remote) return;
      s.client.detach();
      await rm(picturesOf(join(s.storage, 'cache'), remote.name), { recursive: true, force: true });
      await s.attach();
    },
  },
});

const title = (): string => t('Attach to Runtime');
async function attach(s: StudioContext): Promise<void> {
  s.requireTrust();
  const where = await choose(title(), [
    {
      label: t('Pod of a cluster'),
      detail: t('Through kubectl port-forward, with the rights of your kubeconfig'),
      value: askPod,
    },
    {
      label: t('Address on this machine'),
      detail: t('A runtime whose port was forwarded here already, with its token'),
      value: askAddress,
    },
  ]);
  const remote = await where?.(s);
  if (!remote) return;
  // A pod of this name may have held other runs.
  await rm(picturesOf(join(s.storage, 'cache'), remote.name), { recursive: true, force: true });
  await working(t('Attaching to {0}', remote.name), (_say, signal) => s.client.attachTo(remote, signal));
  const open = t('Open Dashboard');
  void showInformationMessage(
    t('Attached to {0}. Detach from Runtime brings this window back to the one of this machine.', remote.name),
    open,
  ).then((picked) => {
    if (picked === open) s.run(commands.openDashboard);
  });
}

async function askPod(s: StudioContext): Promise<RemoteRuntime | undefined> {
  const program = { program: settings.kubectl, cwd: s.extension.extensionPath },
    context = settings.kubeContext || (await askContext(program));
  if (context === undefined) return undefined;
  const namespace = await showInputBox({
    title: title(),
    prompt: t('Namespace of the Job'),
    value: RUNTIME_POD.namespace,
    ignoreFocusOut: true,
    validateInput: (v) => (isNamespace(v) ? undefined : t('This is no name of a namespace.')),
  });
  if (namespace === undefined) return undefined;
  const place: Place = { ...program, context, namespace },
    pods = await working(t('Looking for runtimes in {0}', namespace), async (_say, signal) =>
      parsePods(await kubectl(place, podsArguments(place), { signal })),
    );
  if (pods.length === 0)
    throw new DaemonError(
      'not.found',
      t('No runtime runs in the namespace {0}.', namespace),
      t('Start one with the Job that `dart-studio kubernetes manifests --job IMAGE` prints.'),
    );
  const pod = await choose(
    title(),
    pods.map((p) => ({ label: p.pod, description: t('{0} old', span(Date.now() - p.createdAt)), value: p.pod })),
    undefined,
    { stays: true },
  );
  return pod === undefined ? undefined : new PodRuntime(place, pod);
}
/** Asks for a context of the kubeconfig; undefined when the question was dismissed. */
async function askContext(program: Pick<Place, 'program' | 'cwd'>): Promise<string | undefined> {
  const contexts = (await working(title(), (_say, signal) => kubectl(program, contextsArguments, { signal })))
    .split('\n')
    .map((x) => x.trim())
    .filter(isContext);
  if (contexts.length === 0)
    throw new DaemonError(
      'remote.invalid',
      t('The kubeconfig has no context.'),
      t('Set KUBECONFIG, or log in to the cluster.'),
    );
  return choose(
    title(),
    contexts.map((value) => ({ label: value, value })),
    t('Context of the kubeconfig'),
    { stays: true },
  );
}

async function askAddress(): Promise<RemoteRuntime | undefined> {
  const address = await showInputBox({
    title: title(),
    prompt: t('Address that the runtime was forwarded to'),
    placeHolder: '127.0.0.1:40123',
    ignoreFocusOut: true,
    validateInput: (v) =>
      loopbackPort(v) === undefined
        ? t('Only 127.0.0.1 with a port is connected to, such as 127.0.0.1:40123.')
        : undefined,
  });
  const port = address === undefined ? undefined : loopbackPort(address);
  if (port === undefined) return undefined;
  const pasted = await showInputBox({
    title: title(),
    prompt: t('Its daemon.json; or its token alone, where it has the same port there'),
    password: true,
    ignoreFocusOut: true,
    validateInput: (v) => (recordFrom(v, port) ? undefined : t('This is neither a token nor a daemon.json.')),
  });
  const record = pasted === undefined ? undefined : recordFrom(pasted, port);
  return record && forwardedRuntime(record, port);
}
