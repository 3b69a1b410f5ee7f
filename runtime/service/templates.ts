import { PRESETS, type RunFile } from '../config/index.js';
import type { PresetName } from '../domain/index.js';

/** The run file that "New Run File" begins with: its preset, and the keys that are most often changed. */
export function templateOf(preset: PresetName): string {
  const file: RunFile = { preset, name: preset, seed: 1, ...oftenChanged(preset) };
  return `${JSON.stringify(file, null, 2)}\n`;
}

function oftenChanged(preset: PresetName): RunFile {
  const { tasks, policy, trainer, desktops, budget } = PRESETS[preset],
    vlm = policy?.vlm,
    remote = trainer?.remote;
  if (!vlm)
    return {
      desktops: { provider: 'auto', count: 6 },
      evaluation: { episodes: 64, everyMinutes: 4 },
      budget: { minutes: 20 },
    };
  return {
    tasks: tasks ?? { suite: 'desk' },
    desktops: { provider: 'auto', count: desktops?.count, screen: desktops?.screen },
    policy: {
      kind: 'vlm',
      vlm: {
        model: vlm.model,
        ...(vlm.endpoints ? { endpoints: vlm.endpoints } : {}),
        coordinates: vlm.coordinates,
      },
    },
    trainer: {
      lr: trainer?.lr,
      remote: { ...(remote?.url === undefined ? { engine: 'auto' } : { url: remote.url }), rank: remote?.rank },
    },
    budget: budget ?? { rollouts: 1000 },
  };
}
