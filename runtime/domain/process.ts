/**
 * How a module starts a process or worker of ours: always the one bundle (dist/runtime.js) with a hidden role as its
 * first argument. The composition root hands this to the modules, so none of them knows where it was installed.
 */
export interface ProcessEntry {
  /** Absolute path of the runtime bundle. */
  readonly file: string;
  /**
   * Child processes give way to whatever else the machine does: somebody looks at an editor there while they compute.
   */
  readonly background?: boolean;
}
/**
 * Arguments and options of a child process in a role. In the background it has a session of its own, because Linux
 * shares the processor among sessions first.
 */
export const inRole = (
  entry: ProcessEntry,
  role: ProcessRole,
  platform: string,
): { readonly args: string[]; readonly detached: boolean } => ({
  args: entry.background ? [role, background] : [role],
  detached: entry.background === true && platform === 'linux',
});
/** Second argument of a child that gives way. */
export const background = 'background';
export type ProcessRole =
  '__replica' | '__trainer' | '__index' | '__thumbnails' | '__jpeg' | '__interchange' | '__metrics';
