import { isList, splitLines, str } from '../values.js';
import { trimEndOf, trimStartOf } from './scan.js';
import type { Metric } from './types.js';
import { fileText, nothing, pass, rule } from './types.js';

/** Metrics on configuration files: GIMP's and VLC's. */

/** GIMP: a line `(key ... value)`; with a key of two words, both. */
export const checkConfigStatus: Metric = (i) => {
  const key = rule(i, 'key'),
    value = str(rule(i, 'value'));
  const words = isList(key) ? key.map(str) : [str(key)];
  if (words.length > 2) throw new TypeError('"key" of the rule must be one or two words');
  const text = fileText(i.result);
  if (text === undefined) return nothing('no file');
  return pass(
    text.split('\n').some((line) => {
      if (line.startsWith('#')) return false;
      const items = trimEndOf(trimStartOf(line.trim(), '('), ')')
        .split(/\s+/)
        .filter((w) => w !== '');
      return items.length > 0 && words.every((w, k) => items[k] === w) && items.at(-1) === value;
    }),
  );
};

const afterEquals = (line: string): string => line.slice(line.lastIndexOf('=') + 1).trim();

/** VLC: the last line with `key=` (or else the default) has the value the rule names. */
export const vlcSetting =
  (key: string, fallback: string, field: string): Metric =>
  (i) => {
    const want = str(rule(i, field)),
      text = fileText(i.result);
    if (text === undefined) return nothing('no file');
    const line = splitLines(text)
      .filter((l) => l.includes(`${key}=`))
      .at(-1);
    const value = line === undefined ? fallback : afterEquals(line);
    return pass(value === want, `${key}=${value}`, `${key}=${want}`);
  };

/** VLC: the first line that names the recording folder. */
export const isVlcRecordingsFolder: Metric = (i) => {
  const want = str(rule(i, 'recording_file_path')),
    text = fileText(i.result);
  const line = text?.split('\n').find((l) => !l.startsWith('#') && l.includes('input-record-path'));
  return line === undefined ? nothing('not set') : pass(afterEquals(line) === want, afterEquals(line), want);
};

/** VLC: a global key for play/pause is set ("1") or not ("0"). */
export const checkGlobalKeyPlayPause: Metric = (i) => {
  const want = str(rule(i, 'expected_global_key_play_pause')),
    text = fileText(i.result);
  if (text === undefined) return nothing('no file');
  const line = text
    .split('\n')
    .filter((l) => l.includes('global-key-play-pause='))
    .at(-1);
  const state = line === undefined || afterEquals(line) === '' ? '0' : '1';
  return pass(state === want, state, want);
};

/** VLC: the volume slider's colours equal the expected ones, or are all darker than 100. */
export const checkQtSliderColours: Metric = (i) => {
  const type = rule(i, 'type'),
    text = fileText(i.result);
  if (type !== 'match' && type !== 'blackish') throw new TypeError(`check_qt_slider_colours has no type ${str(type)}`);
  if (text === undefined) return nothing('no file');
  const line = text
    .split('\n')
    .filter((l) => l.includes('qt-slider-colours'))
    .at(-1);
  const colours = line === undefined ? '153;210;153;20;210;20;255;199;15;245;39;29' : afterEquals(line);
  if (type === 'match') return pass(colours === str(rule(i, 'expected_qt_slider_colours')), colours);
  const values = colours.split(';').map((s) => (s.trim() === '' ? Number.NaN : Number(s)));
  return pass(
    values.slice(0, values.length - (values.length % 3)).every((v) => v < 100),
    colours,
  );
};
