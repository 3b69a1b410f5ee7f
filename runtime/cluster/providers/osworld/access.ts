import type { RunConfig } from '../../../config/index.js';

/** The run file's options. */
export type OsworldOptions = RunConfig['desktops']['osworld'];

/**
 * This machine's permissions. They never come from a run file: a disk of a virtual machine is a file of this machine,
 * and its image is a program that runs here with a device of the host.
 */
export interface MachineDisk {
  /** OSWorld's Ubuntu.qcow2. */
  readonly disk: string | undefined;
  /** Image of the container that runs it. */
  readonly image: string;
}
export const DISK_VARIABLE = 'DART_STUDIO_OSWORLD_VM',
  IMAGE_VARIABLE = 'DART_STUDIO_OSWORLD_IMAGE';
const IMAGE = 'happysixd/osworld-docker';

export const machineDisk = (env: NodeJS.ProcessEnv = process.env): MachineDisk => ({
  disk: env[DISK_VARIABLE]?.trim() || undefined,
  image: env[IMAGE_VARIABLE]?.trim() || IMAGE,
});
