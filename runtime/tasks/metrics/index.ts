import * as basic from './basic.js';
import * as structured from './structured.js';
import * as text from './text.js';
import type { Metric } from './types.js';

/** OSWorld's metrics by the name in `evaluator.func`. `infeasible` is judged by the engine itself. */
export const metrics: Readonly<Record<string, Metric>> = {
  check_include_exclude: basic.checkIncludeExclude, exact_match: basic.exactMatch, match_in_list: basic.matchInList, is_in_list: basic.isInList,
  literal_match: basic.literalMatch, check_direct_json_object: basic.checkDirectJsonObject, is_utc_0: basic.isUtc0,
  check_gnome_favorite_apps: basic.checkGnomeFavoriteApps, check_moved_jpgs: basic.checkMovedJpgs, is_in_vm_clickboard: basic.isInVmClickboard,
  check_text_enlarged: basic.checkTextEnlarged, is_extension_installed: basic.isExtensionInstalled, is_vlc_fullscreen: basic.isVlcFullscreen,
  compare_text_file: text.compareTextFile, diff_text_file: text.diffTextFile, file_contains: text.fileContains, check_line_number: text.checkLineNumber,
  check_list: text.checkList, compare_config: text.compareConfig, compare_answer: text.compareAnswer, compare_terminal_and_txt: text.compareTerminalAndTxt,
  compare_python_pure_text: text.comparePythonPureText, compare_result_files: text.compareResultFiles,
  check_json: structured.checkJson, check_json_settings: structured.checkJsonSettings, check_json_keybindings: structured.checkJsonKeybindings,
  check_csv: structured.checkCsv, compare_csv: structured.compareCsv,
};
export const INFEASIBLE = 'infeasible';
