import { existsSync } from 'node:fs';
import type { OutgoingHttpHeaders } from 'node:http';
import type { Agent, RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { messageOf, StudioError } from '../../../domain/index.js';
import { CredentialPlugin, type PluginOptions } from './credentialPlugin.js';

/**
 * This machine's permissions. They never come from a run file: a context decides in whose name pods are made, and a
 * credential plug-in is a program that runs here.
 */
export interface MachineAccess {
  /** Context of the kubeconfig; without one only the credentials of the pod that this process runs in are used. */
  readonly context: string | undefined;
  /** Credential plug-ins (`exec` of a kubeconfig's user) that may run, by their command as the kubeconfig has it. */
  readonly plugins: readonly string[];
}

export const CONTEXT_VARIABLE = 'DART_STUDIO_KUBE_CONTEXT',
  PLUGINS_VARIABLE = 'DART_STUDIO_KUBE_PLUGINS';
const TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

export const machineAccess = (env: NodeJS.ProcessEnv = process.env): MachineAccess => ({
  context: env[CONTEXT_VARIABLE]?.trim() || undefined,
  plugins: (env[PLUGINS_VARIABLE] ?? '')
    .split(',')
    .map((p) => p.trim())
    .filter((p) => p !== ''),
});

/** A cluster as seen with one context's credentials. */
export interface ClusterAccess {
  /** Name in messages: the context, or `this cluster`. */
  readonly name: string;
  readonly server: URL;
  /** Namespace of the context; absent when it names none. */
  readonly namespace: string | undefined;
  /** TLS, credentials and agent of one request; asks a credential plug-in where the last answer has expired. */
  options(): Promise<RequestOptions>;
  /** The server does not accept the credentials of these options (401): a plug-in is asked for others. */
  refused?(o: RequestOptions): void;
}
export interface AccessOptions extends PluginOptions {
  /** The folder in which the pod that this process runs in has its service account's token; for tests. */
  readonly root?: string;
}

/** Rejects with `desktop.unavailable` when no context is allowed here, or what it needs is not. */
export async function openAccess(machine: MachineAccess, o: AccessOptions = {}): Promise<ClusterAccess> {
  const root = o.root ?? '';
  if (machine.context === undefined && !existsSync(root + TOKEN))
    throw unusable(
      'Desktops on Kubernetes need a context that this machine allows, and none is named.',
      'Name one of `kubectl config get-contexts` by the setting dartStudio.kubernetes.context, `--kube-context NAME` or DART_STUDIO_KUBE_CONTEXT. A run file cannot.',
    );
  const library = await import('./library.js'),
    config = new library.KubeConfig();
  if (machine.context === undefined) loadOfPod(config, root);
  else load(config, machine.context);
  const cluster = config.getCurrentCluster();
  if (!cluster)
    throw unusable(
      `The context ${machine.context} names a cluster that the kubeconfig does not describe.`,
      'Correct the kubeconfig (KUBECONFIG, or ~/.kube/config).',
    );
  const plugin = pluginOf(config, machine, o);
  if (cluster.proxyUrl?.startsWith('socks'))
    throw unusable('A SOCKS proxy (proxy-url of the kubeconfig) is not supported.', 'Use an HTTP proxy, or a tunnel.');
  const agents = new Agents();
  return {
    name: machine.context ?? 'this cluster',
    server: new URL(cluster.server),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace?.trim() || undefined,
    options: async () => {
      const options: RequestOptions = {};
      try {
        await config.applyToHTTPSOptions(options as never);
      } catch (e) {
        throw unusable(
          `The credentials of ${machine.context ?? 'this pod'} cannot be had: ${messageOf(e).trim()}`,
          'Log in to the cluster again; `kubectl get pods` must work on this machine.',
          e,
        );
      }
      return { ...options, agent: agents.for(options) };
    },
    refused: (options) => plugin?.refused(bearerOf(options)),
  };
}

/** The service account of the pod that this process runs in. */
function loadOfPod(config: KubeConfig, root: string): void {
  if (!process.env['KUBERNETES_SERVICE_HOST'] || !process.env['KUBERNETES_SERVICE_PORT'])
    throw unusable(
      'This pod has the token of a service account, but not the address of its API server (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT).',
      'Set both in the pod, or name a context (DART_STUDIO_KUBE_CONTEXT).',
    );
  config.loadFromCluster(root);
}

function load(config: KubeConfig, context: string): void {
  try {
    config.loadFromDefault();
  } catch (e) {
    throw unusable(`The kubeconfig cannot be read: ${messageOf(e)}`, 'Correct KUBECONFIG or ~/.kube/config.', e);
  }
  const names = config.getContexts().map((c) => c.name);
  if (!names.includes(context))
    throw unusable(
      `The kubeconfig has no context ${context}; it has: ${names.join(', ') || 'none'}.`,
      'Name one of these, or set KUBECONFIG to the file that has it.',
    );
  config.setCurrentContext(context);
}

/**
 * Refuses credentials that a program of this machine gives, unless the program is allowed. The library would run it for
 * every request at once that finds no credential, and wait for ever.
 */
function pluginOf(config: KubeConfig, machine: MachineAccess, o: PluginOptions): CredentialPlugin | undefined {
  const user = config.getCurrentUser();
  if (!user) return undefined;
  const provider = user.authProvider as { name?: string; config?: { exec?: unknown } } | undefined;
  if (provider?.name === 'gcp' || provider?.name === 'azure' || provider?.name === 'exec' || provider?.config?.exec)
    throw unusable(
      `The kubeconfig's user has the auth-provider ${provider.name}, which Kubernetes removed in 1.26.`,
      'Use a credential plug-in (gke-gcloud-auth-plugin, kubelogin).',
    );
  const exec = user.exec as
    { command?: string; args?: string[]; apiVersion?: string; env?: { name: string; value: string }[] } | undefined;
  if (!exec) return undefined;
  if (!exec.command || !machine.plugins.includes(exec.command))
    throw unusable(
      `The kubeconfig asks the program ${exec.command} for credentials, and this machine does not allow it.`,
      `Allow it by the setting dartStudio.kubernetes.credentialPlugins, \`--kube-plugin ${exec.command}\` or ${PLUGINS_VARIABLE}, if you trust the kubeconfig. A run file cannot.`,
    );
  const info = { apiVersion: exec.apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  const env = Object.fromEntries((exec.env ?? []).map((e) => [e.name, e.value]));
  const plugin = new CredentialPlugin(
    { command: exec.command, args: exec.args ?? [], env: { ...env, KUBERNETES_EXEC_INFO: JSON.stringify(info) } },
    o,
  );
  (user as { exec?: unknown }).exec = undefined;
  config.addAuthenticator({
    isAuthProvider: (u) => u === user,
    applyAuthentication: async (_, options) => {
      const c = await plugin.credential();
      if (c.cert !== undefined) options.cert = c.cert;
      if (c.key !== undefined) options.key = c.key;
      if (c.token !== undefined) options.headers = { ...options.headers, Authorization: `Bearer ${c.token}` };
    },
  });
  return plugin;
}

/** The token of a request, where it has one. */
const bearerOf = (o: RequestOptions): string | undefined =>
  /^Bearer (.+)$/.exec(String((o.headers as OutgoingHttpHeaders | undefined)?.['Authorization'] ?? ''))?.[1];

/** The library makes an agent a request; connections are kept by keeping one while certificates are the same. */
class Agents {
  #key = '';
  #agent: Agent | undefined;

  for(o: RequestOptions): Agent {
    const key = [o.ca, o.cert, o.key].map((b) => String(b ?? '')).join('\n');
    if (this.#agent && key === this.#key) return this.#agent;
    this.#key = key;
    this.#agent = o.agent as Agent;
    Object.assign(this.#agent, { keepAlive: true });
    return this.#agent;
  }
}

const unusable = (message: string, remedy: string, cause?: unknown): StudioError =>
  new StudioError('desktop.unavailable', message, remedy, cause === undefined ? {} : { cause });
