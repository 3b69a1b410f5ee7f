/** Starting points of a run file, by name. */
export const PRESET_NAMES = ['quickstart', 'desk', 'ui-tars-7b', 'qwen3-vl-8b', 'osworld', 'dart'] as const;
export type PresetName = (typeof PRESET_NAMES)[number];
