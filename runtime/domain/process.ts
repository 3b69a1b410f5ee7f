/**
 * How a module starts a process or worker of ours: always the one bundle (dist/runtime.js) with a hidden role as its first
 * argument. The composition root hands this to the modules, so none of them knows where it was installed.
 */
export interface ProcessEntry { /** Absolute path of the runtime bundle. */ readonly file: string }
export type ProcessRole = '__replica' | '__trainer' | '__index';
