/**
 * How a module starts a child process or a worker: always the one bundle (dist/runtime.js) with a hidden role as its
 * first argument. The composition root hands this to the modules, so none of them knows where it was installed.
 */
export interface ProcessEntry {
  /** Absolute path of the runtime bundle. */
  readonly file: string;
  /**
   * Child processes run at a lower priority, because a person works in an editor on this machine while they compute.
   */
  readonly background?: boolean;
}
/**
 * Arguments and options of a child process in a role. In the background it gets its own session, because Linux divides
 * the processor among sessions first.
 */
export const inRole = (
  entry: ProcessEntry,
  role: ProcessRole,
  platform: string,
): { readonly args: string[]; readonly detached: boolean } => ({
  args: entry.background ? [role, background] : [role],
  detached: entry.background === true && platform === 'linux',
});
/** Second argument of a child that runs at a lower priority. */
export const background = 'background';
export type ProcessRole =
  | '__replica'
  | '__trainer'
  | '__index'
  | '__thumbnails'
  | '__jpeg'
  | '__interchange'
  | '__metrics'
  | '__screens'
  | '__framebuffers'
  | '__models'
  | '__perception';
