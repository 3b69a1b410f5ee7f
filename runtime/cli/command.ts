import type { Command } from 'commander';

/** Makes a commander action of a command: its exit code, 0 for none, is reported to the caller of `createProgram`. */
export type Act = <A extends unknown[]>(f: (...a: A) => Promise<number | void>) => (...a: A) => Promise<void>;

/** Adds the options for alerts that no window passes on. */
export const withAlerts = (c: Command): Command =>
  c
    .option(
      '--alert-command <file>',
      'program run for each alert and at the end of a run, without a shell and arguments; it reads the alert as JSON (also DART_STUDIO_ALERT_COMMAND)',
    )
    .option('--alert-webhook <url>', 'address that each is posted to as JSON (also DART_STUDIO_ALERT_WEBHOOK)')
    .option('--alert-desktop', 'a notification of the operating system for each (also DART_STUDIO_ALERT_DESKTOP=1)');

/** Adds the options about this machine to a command that uses desktops. */
export const withCluster = (c: Command): Command =>
  c
    .option('--kube-context <name>', 'context of the kubeconfig whose credentials desktops on Kubernetes may use')
    .option('--kube-plugin <command...>', 'credential plug-ins that the kubeconfig may run on this machine')
    .option('--osworld-vm <file>', "OSWorld's Ubuntu.qcow2, which desktops of the provider `osworld` may run");
