import { isObject } from '../foreign/json.js';
import { merge, parseRunFile, suiteOf } from './load.js';
import { EARLIER_QUICKSTART_FAMILIES } from './presets/quickstart.js';
import type { RunConfig, RunFile } from './schema.js';

/**
 * The configuration that a run was started with, as its run.json holds it. A quick start that began before its templates
 * were written there goes on with those of then, whatever the preset names now. Throws `config.invalid`.
 */
export const parseStoredConfig = (config: unknown, over: RunFile = {}): RunConfig =>
  parseRunFile(withEarlierFamilies(config), over);

function withEarlierFamilies(config: unknown): unknown {
  if (!isObject(config) || config['preset'] !== 'quickstart') return config;
  const { tasks } = config,
    named = isObject(tasks) && tasks['families'] !== undefined;
  return named || suiteOf(config) !== 'desk'
    ? config
    : merge(config, { tasks: { families: [...EARLIER_QUICKSTART_FAMILIES] } });
}
