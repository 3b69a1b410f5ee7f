import type { Value } from '../values.js';
import { cacheFile, cloudFile, configFile, vmFile } from './files.js';
import { listDirectory, screenSize, vlcStatus, vmCommand, windowSize } from './system.js';
import type { Getter, GetterConfig } from './types.js';

export const getters: Readonly<Record<string, Getter>> = {
  vm_file: vmFile,
  cloud_file: cloudFile,
  cache_file: cacheFile,
  gimp_config_file: configFile((c) => `/home/user/.config/GIMP/2.10/${String(c['file_name'])}`),
  vlc_config: configFile(() => '/home/user/.config/vlc/vlcrc'),
  vlc_playing_info: vlcStatus,
  rule: (_ctx, c) => Promise.resolve(ruleOf(c)),
  vm_command_line: vmCommand('stdout'),
  vm_command_error: vmCommand('stderr'),
  list_directory: listDirectory,
  vm_screen_size: screenSize,
  vm_window_size: windowSize,
};

function ruleOf(c: GetterConfig): Value {
  if (!Object.hasOwn(c, 'rules')) throw new Error('the rule has no "rules"');
  return c['rules'] as Value;
}
