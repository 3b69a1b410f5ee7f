import * as basic from './basic.js';
import * as libreoffice from './libreoffice.js';
import * as media from './media.js';
import * as settings from './settings.js';
import * as structured from './structured.js';
import * as text from './text.js';
import * as thunderbird from './thunderbird.js';
import type { Metric } from './types.js';

/** OSWorld's metrics by the name in `evaluator.func`. `infeasible` is judged by the engine itself. */
export const metrics: Readonly<Record<string, Metric>> = {
  check_include_exclude: basic.checkIncludeExclude,
  exact_match: basic.exactMatch,
  match_in_list: basic.matchInList,
  is_in_list: basic.isInList,
  literal_match: basic.literalMatch,
  check_direct_json_object: basic.checkDirectJsonObject,
  is_utc_0: basic.isUtc0,
  check_gnome_favorite_apps: basic.checkGnomeFavoriteApps,
  check_moved_jpgs: basic.checkMovedJpgs,
  is_in_vm_clickboard: basic.isInVmClickboard,
  check_text_enlarged: basic.checkTextEnlarged,
  is_extension_installed: basic.isExtensionInstalled,
  is_vlc_fullscreen: basic.isVlcFullscreen,
  compare_text_file: text.compareTextFile,
  diff_text_file: text.diffTextFile,
  file_contains: text.fileContains,
  check_line_number: text.checkLineNumber,
  check_list: text.checkList,
  compare_config: text.compareConfig,
  compare_answer: text.compareAnswer,
  compare_terminal_and_txt: text.compareTerminalAndTxt,
  compare_python_pure_text: text.comparePythonPureText,
  compare_result_files: text.compareResultFiles,
  check_config_status: settings.checkConfigStatus,
  is_vlc_recordings_folder: settings.isVlcRecordingsFolder,
  check_qt_bgcone: settings.vlcSetting('qt-bgcone', '1', 'expected_qt_bgcone'),
  check_qt_max_volume: settings.vlcSetting('qt-max-volume', '125', 'expected_qt_max_volume'),
  check_qt_minimal_view: settings.vlcSetting('qt-minimal-view', '0', 'expected_qt_minimal_view'),
  check_play_and_exit: settings.vlcSetting('play-and-exit', '0', 'expected_play_and_exit'),
  check_one_instance_when_started_from_file: settings.vlcSetting(
    'one-instance-when-started-from-file',
    '1',
    'expected_one_instance_when_started_from_file',
  ),
  check_qt_slider_colours: settings.checkQtSliderColours,
  check_global_key_play_pause: settings.checkGlobalKeyPlayPause,
  check_thunderbird_prefs: thunderbird.checkThunderbirdPrefs,
  check_thunderbird_filter: thunderbird.checkThunderbirdFilter,
  check_thunderbird_folder: thunderbird.checkThunderbirdFolder,
  find_default_font: libreoffice.findDefaultFont,
  check_auto_saving_time: libreoffice.checkAutoSavingTime,
  check_presenter_console_disable: libreoffice.checkPresenterConsoleDisable,
  check_mp3_meta: media.checkMp3Meta,
  check_image_size: media.checkImageSize,
  check_image_file_size: media.checkImageFileSize,
  is_vlc_playing: media.isVlcPlaying,
  fuzzy_match: text.fuzzyMatch,
  check_json: structured.checkJson,
  check_json_settings: structured.checkJsonSettings,
  check_json_keybindings: structured.checkJsonKeybindings,
  check_csv: structured.checkCsv,
  compare_csv: structured.compareCsv,
};
export const INFEASIBLE = 'infeasible';
