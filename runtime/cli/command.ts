import type { Command } from 'commander';

/** Makes a commander action of a command: its exit code, 0 for none, is reported to the caller of `createProgram`. */
export type Act = <A extends unknown[]>(f: (...a: A) => Promise<number | void>) => (...a: A) => Promise<void>;

/** What a command that uses a cluster may be told of it. */
export const withCluster = (c: Command): Command =>
  c
    .option('--kube-context <name>', 'context of the kubeconfig whose credentials desktops on Kubernetes may use')
    .option('--kube-plugin <command...>', 'credential plug-ins that the kubeconfig may run on this machine');
