import { PRESETS, parseRunText, problemsOf, type RunFile } from '../config/index.js';
import { toRunError, type PresetName } from '../domain/index.js';
import type { ConfigProblem } from '../protocol/types.js';

/** The run file that "New Run File" begins with: its preset, and the keys that are most often changed. */
export function templateOf(preset: PresetName): string {
  const file: RunFile = { preset, name: preset, seed: 1, ...oftenChanged(preset) };
  return `${JSON.stringify(file, null, 2)}\n`;
}

function oftenChanged(preset: PresetName): RunFile {
  const { tasks, policy, trainer, desktops, evaluation, budget } = PRESETS[preset],
    vlm = policy?.vlm,
    remote = trainer?.remote;
  if (!vlm)
    return {
      desktops: { provider: 'auto', count: 6 },
      ...(evaluation ? { evaluation } : {}),
      ...(budget ? { budget } : {}),
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

/** The problems in a run file's text, by their places. */
export function configProblems(text: string, file = 'the run file'): ConfigProblem[] {
  try {
    parseRunText(text, file);
    return [];
  } catch (e) {
    const found = problemsOf(e);
    if (found.length === 0) return [{ path: [], message: toRunError(e).message, line: 1 }];
    return found.map(({ path, what, line }) => ({ path, message: what, ...(line === undefined ? {} : { line }) }));
  }
}
