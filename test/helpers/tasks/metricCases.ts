import { crc32 } from '../../../runtime/data/store/crc32.js';
import { FileValue, type Value } from '../../../runtime/tasks/values.js';

/**
 * What each metric of ours is given and what it must say: the unit tests judge them, and a command compares them with
 * OSWorld's own evaluators (test/bench/osworld).
 */
export interface MetricCase {
  readonly metric: string;
  readonly what: string;
  readonly result: Value;
  readonly expected: Value | undefined;
  /** `throws`: the task file is wrong. */
  readonly score: number | 'throws';
  readonly options: Readonly<Record<string, unknown>>;
}
export const metricCases: MetricCase[] = [];

type Row = readonly [
  what: string,
  result: Value,
  expected: Value | undefined,
  score: number,
  options?: Record<string, unknown>,
];
function table(metric: string, rows: readonly Row[]): void {
  for (const [what, result, expected, score, options = {}] of rows)
    metricCases.push({ metric, what, result, expected, score, options });
}
/** Wrong rules, gold files or options are faults, never scores. */
function faults(
  metric: string,
  rows: readonly (readonly [
    what: string,
    result: Value,
    expected: Value | undefined,
    options?: Record<string, unknown>,
  ])[],
): void {
  for (const [what, result, expected, options = {}] of rows)
    metricCases.push({ metric, what, result, expected, score: 'throws', options });
}
const file = (text: string | Buffer, name = 'f'): FileValue => new FileValue(name, Buffer.from(text));
const notText = file(Buffer.from([0xff, 0xfe, 0x80]));

table('check_include_exclude', [
  ['all in, none out', 'abc def', { include: ['abc', 'def'], exclude: ['x'] }, 1],
  ['one missing', 'abc', { include: ['abc', 'def'] }, 0],
  ['one that must not be', 'abc x', { include: ['abc'], exclude: ['x'] }, 0],
  ['no rules', 'abc', {}, 1],
  ['nothing found', null, { include: [] }, 0],
  ['text of a file', file('hello\n'), { include: ['hello'] }, 1],
  ['not text', notText, { exclude: ['x'] }, 0],
  ['empty output includes nothing', '', { include: ['a'] }, 0],
  ['empty output excludes', '', { exclude: ['a'] }, 1],
]);
faults('check_include_exclude', [
  ['without a rule', 'a', undefined],
  ['with a rule that is no list', 'a', { include: 'a' }],
]);
table('exact_match', [
  ['equal', 'a\n', { expected: 'a\n' }, 1],
  ['a newline counts', 'a\n', { expected: 'a' }, 0],
  ['lists', ['a', 1], { expected: ['a', 1] }, 1],
  ['order counts', ['b', 'a'], { expected: ['a', 'b'] }, 0],
  ['objects by key', { a: 1, b: [true] }, { expected: { b: [true], a: 1 } }, 1],
  ['True is 1, as in Python', true, { expected: 1 }, 1],
  ['nothing', null, { expected: 'a' }, 0],
  ['nothing is what is wanted', null, { expected: null }, 1],
]);
faults('exact_match', [['without "expected"', 'a', { include: [] }]]);
table('match_in_list', [
  ['a member', 'b', { expected: ['a', 'b'] }, 1],
  ['no member', 'c', { expected: ['a'] }, 0],
  ['part of a string', 'b', { expected: 'abc' }, 1],
  ['nothing', null, { expected: ['a'] }, 0],
]);
table('is_in_list', [
  ['in the list', ['a', 'b'], { expected: 'b' }, 1],
  ['in the text', 'a b', { expected: 'b' }, 1],
  ['not there', ['a'], { expected: 'b' }, 0],
  ['nothing', null, { expected: 'a' }, 0],
]);
table('literal_match', [
  ['equal', 'A', 'A', 1],
  ['case counts', 'A', 'a', 0],
  ['unless told not to', 'A', 'a', 1, { ignore_case: true }],
  ['numbers by their text', 3, '3', 1],
  ['lists', ['A', 2], ['a', '2'], 1, { type: 'list', ignore_case: true }],
  ['lists of other length', ['a'], ['a', 'b'], 0, { type: 'list' }],
  ['no list', 'a', ['a'], 0, { type: 'list' }],
  ['nothing', null, 'a', 0],
]);
faults('literal_match', [
  ['on an unknown type', 'a', 'a', { type: 'set' }],
  ['without an expected value', null, undefined],
]);
table('check_direct_json_object', [
  ['pairs are there', '{"a": 1, "b": "x", "c": 2}', { expected: { a: 1, b: 'x' } }, 1],
  ['Python quotes', " {'a': 'x'}\n", { expected: { a: 'x' } }, 1],
  ['a wrong value', '{"a": 2}', { expected: { a: 1 } }, 0],
  ['a missing key', '{}', { expected: { a: 1 } }, 0],
  ['an object', { a: [1] }, { expected: { a: [1] } }, 1],
  ['not JSON', 'nope', { expected: { a: 1 } }, 0],
  ['nothing', null, { expected: { a: 1 } }, 0],
  ['missing key expected to be null', '{}', { expected: { a: null } }, 1],
  ['lists in any order', { a: ['y', 'x'] }, { expected: { a: ['x', 'y'], ignore_list_order: true } }, 1],
  ['another list', { a: ['y'] }, { expected: { a: ['x', 'y'], ignore_list_order: true } }, 0],
  ['part of a value', { a: 'xyz' }, { expected: { a: 'y' }, expect_in_result: true }, 1],
  ['any of a list', { a: ['q', 'r'] }, { expected: { a: ['r', 's'] }, expect_in_result: true }, 1],
  ['none of a list', { a: ['q'] }, { expected: { a: ['r'] }, expect_in_result: true }, 0],
  ['a string equal to one of a list', { a: 'r' }, { expected: { a: ['r', 's'] }, expect_in_result: true }, 1],
  ['a number cannot be part', { a: 1 }, { expected: { a: 1 }, expect_in_result: true }, 0],
]);
faults('check_direct_json_object', [
  ['when the expected value could not be found out', { a: 1 }, { expected: { a: '__EVALUATION_FAILED__' } }],
  ['without an object', {}, { expected: 'x' }],
]);
const timedatectl = (zone: string): string =>
  `               Local time: Thu\n           Universal time: Thu\n                 RTC time: Thu\n                Time zone: ${zone}\nSystem clock synchronized: yes\n`;
table('is_utc_0', [
  ['UTC', timedatectl('Atlantic/Faroe (WET, +0000)'), undefined, 1],
  ['elsewhere', timedatectl('Asia/Tokyo (JST, +0900)'), undefined, 0],
  ['too short', 'x', undefined, 0],
  ['nothing', null, undefined, 0],
]);
table('check_gnome_favorite_apps', [
  ['any order', "['b.desktop', 'a.desktop']\n", { expected: ['a.desktop', 'b.desktop'] }, 1],
  ['one too many', "['a', 'b']", { expected: ['a'] }, 0],
  ['another', "['c']", { expected: ['a'] }, 0],
  ['empty', '@as []', { expected: [] }, 1],
  ['not a list', 'No such schema', { expected: [] }, 0],
  ['nothing', null, { expected: [] }, 0],
]);
const tree = (...names: string[]): Value => ({
  type: 'directory',
  name: 'd',
  children: names.map((name) => ({ type: 'file', name })),
});
table('check_moved_jpgs', [
  ['the same', tree('b', 'a'), { expected: ['a', 'b'] }, 1],
  ['one missing', tree('a'), { expected: ['a', 'b'] }, 0],
  ['another', tree('a', 'c'), { expected: ['a', 'b'] }, 0],
  ['no folder', null, { expected: [] }, 0],
]);
table('is_in_vm_clickboard', [
  ['text', { expected: 'x' }, 'a x b', 1],
  ['all of a list', { expected: ['a', 'b'] }, 'a x b', 1],
  ['one missing', { expected: ['a', 'c'] }, 'a b', 0],
  ['nothing in it', { expected: 'x' }, null, 0],
]);
table('check_text_enlarged', [
  ['larger', '1.25\n', undefined, 1],
  ['as before', '1.0', undefined, 0],
  ['not a number', 'x', undefined, 0],
  ['nothing', null, undefined, 0],
]);
table('is_extension_installed', [
  ['there', 'a.b\nc.d\n', { type: 'contain', expected: 'c.d' }, 1],
  ['not there', 'a.b', { type: 'contain', expected: 'c.d' }, 0],
  ['rightly not there', 'a.b', { type: 'not_contain', expected: 'c.d' }, 1],
  ['nothing is not "not there"', null, { type: 'not_contain', expected: 'c' }, 0],
]);
faults('is_extension_installed', [['on an unknown type', 'a', { type: 'is', expected: 'a' }]]);
table('is_vlc_fullscreen', [
  ['same size', { width: 640, height: 480 }, { width: 640, height: 480 }, 1],
  ['smaller', { width: 640, height: 480 }, { width: 600, height: 480 }, 0],
  ['no window', { width: 1, height: 1 }, null, 0],
]);

table('compare_text_file', [
  ['equal', file('a\nb\n'), file('a\nb\n'), 1],
  ['CRLF is a line end', file('a\r\nb\r\n'), file('a\nb\n'), 1],
  ['a blank counts', file('a '), file('a'), 0],
  ['unless told not to', file(' a\t\tb \n'), file('a b'), 1, { ignore_blanks: true }],
  ['case', file('A'), file('a'), 1, { ignore_case: true }],
  ['no file', null, file('a'), 0],
  ['not text', notText, file('a'), 0],
  ['both empty', file(''), file(''), 1],
  ['far too long', file(Buffer.alloc(5 << 20, 97)), file('a'), 0],
]);
faults('compare_text_file', [
  ['without a gold file', file('a'), undefined],
  ['on a gold file that is not text', file('a'), notText],
]);
table('diff_text_file', [
  ['equal', file('a\nb'), file('a\nb\n'), 1],
  ['half', file('a\nb'), file('a\nc'), 0.5],
  ['two of five lines', file('a\nx'), file('a\nb\nc'), 0.4],
  ['nothing alike', file('x'), file('y'), 0],
  ['both empty', file(''), file(''), 1],
  ['no file', null, file('a'), 0],
]);
table('file_contains', [
  ['all', file('CPU %user'), { expected: ['CPU', '%user'] }, 1],
  ['one missing', file('CPU'), { expected: ['CPU', 'x'] }, 0],
  ['no file', null, { expected: [] }, 0],
]);
table('check_line_number', [
  ['as many', file('10:00:01 a\nno\n23:59:60 b'), { expected: '2' }, 1],
  ['fewer', file('10:00:01'), { expected: 2 }, 0],
  ['24:00:00 is no time', file('24:00:00\n'), { expected: 0 }, 1],
  ['no file', null, { expected: 1 }, 0],
]);
table('check_list', [
  ['all found', file('Attachment added!\nx\n'), { expect: ['Attachment added!', '^x$'] }, 1],
  ['one missing', file('a\n'), { expect: ['b'] }, 0],
  ['one that must not be', file('a\nb\n'), { expect: ['a'], unexpect: ['b$'] }, 0],
  ['line by line', file('a\nb\n'), { expect: ['a.b'] }, 0],
  ['no file', null, { expect: [] }, 0],
]);
faults('check_list', [['on a wrong pattern', file('a'), { expect: ['('] }]]);
table('compare_config', [
  ['exactly', file('a=1\n'), { expected: 'a=1\n' }, 1],
  ['not quite', file('a=1'), { expected: 'a=1\n' }, 0],
  ['no file', null, { expected: '' }, 0],
]);
table('compare_answer', [
  ['equal', 'a', { expected: 'a' }, 1],
  ['empty is no answer', '', { expected: '' }, 0],
]);
table('compare_terminal_and_txt', [
  ['equal', file('a\n'), 'a\n', 1],
  ['other', file('a'), 'b', 0],
  ['nothing shown', file(''), '', 0],
]);
table('compare_python_pure_text', [
  ['but for blank lines', file('#!/usr/bin/python\n\nx = 1  \n\n\ty = 2\n'), file('x = 1\n    y = 2'), 1],
  ['indent counts', file('  x'), file('x'), 0],
  ['a later comment counts', file('x\n# coding: utf8'), file('x'), 0],
  ['no file', null, file('x'), 0],
]);
table('compare_result_files', [
  ['same text', file(' a \n'), file('a'), 1],
  ['the number is in it', file('about 42 files'), file('42'), 1],
  ['close numbers', file('0.30001'), file('0.3'), 1],
  ['other numbers', file('0.31'), file('0.30'), 0],
  ['other text', file('b'), file('a'), 0],
  ['no file', null, file('1'), 0],
]);
table('fuzzy_match', [
  ['equal', 'abc', { expected: 'abc' }, 1],
  ['rapidfuzz: "this is a test" and "this is a test!"', 'this is a test', { expected: 'this is a test!' }, 28 / 29],
  ['nothing alike', 'abc', { expected: 'xyz' }, 0],
  ['nothing', null, { expected: 'a' }, 0],
]);

const doc = file(JSON.stringify({ a: { b: [10, 20], c: 'Text' }, n: 1.5 }));
table('check_json', [
  [
    'by path',
    doc,
    {
      expect: [
        { key: ['a', 'b', 1], method: 'eq', ref: 20 },
        { key: ['a', 'c'], method: 're.I', ref: '^te' },
      ],
    },
    1,
  ],
  ['a missing path', doc, { expect: [{ key: ['a', 'x'], method: 'ne', ref: 1 }] }, 0],
  [
    'order',
    doc,
    {
      expect: [
        { key: ['n'], method: 'ge', ref: 1.5 },
        { key: ['n'], method: 'range.te', ref: [1, 1.5] },
      ],
    },
    1,
  ],
  ['open range', doc, { expect: [{ key: ['n'], method: 'range.te', ref: [1.5, 2] }] }, 0],
  ['approx', doc, { expect: [{ key: ['n'], method: 'approx:0.1', ref: 1.45 }] }, 1],
  ['must not be', doc, { unexpect: [{ key: ['a', 'c'], method: 'eq', ref: 'Text' }] }, 0],
  ['missing is not unexpected', doc, { unexpect: [{ key: ['z'], method: 'eq', ref: 1 }] }, 1],
  ['not JSON', file('{'), { expect: [] }, 0],
  ['no file', null, {}, 0],
]);
faults('check_json', [
  ['on an unknown method', doc, { expect: [{ key: ['n'], method: 'like', ref: 1 }] }],
  ['on YAML', doc, {}, { is_yaml: true }],
]);
table('check_json_settings', [
  ['pairs', file('{"a": 1, "b": {"c": true}}'), { expected: { b: { c: true } } }, 1],
  ['another value', file('{"a": 1}'), { expected: { a: 2 } }, 0],
  ['comments are not JSON', file('// x\n{"a": 1}'), { expected: { a: 1 } }, 0],
  ['no file', null, { expected: {} }, 0],
]);
table('check_json_keybindings', [
  ['there', file('[{"key": "ctrl+j", "command": "x"}]'), { expected: { key: 'ctrl+j', command: 'x' } }, 1],
  ['after a comment line', file('// Place your key bindings\n[{"key": "a"}]'), { expected: { key: 'a' } }, 1],
  ['not there', file('[]'), { expected: { key: 'a' } }, 0],
  ['no list', file('{}'), { expected: {} }, 0],
]);
const csv = file('url,user\n"imap://a",me\n"smtp://a",me\n');
table('check_csv', [
  ['records', csv, { expect: [{ url: 'imap://a' }, { user: 'me', url: 'smtp://a' }] }, 1],
  ['one missing', csv, { expect: [{ url: 'x' }] }, 0],
  ['must not be', csv, { unexpect: [{ user: 'me' }] }, 0],
  ['an unknown field matches nothing', csv, { unexpect: [{ other: 'x' }] }, 1],
  ['no file', null, {}, 0],
]);
table('compare_csv', [
  ['equal', file('a,b\r\n1,2\r\n'), file('a,b\n1,2\n'), 1],
  ['one more', file('a\nb\nc'), file('a\nb'), 0],
  ['blanks at the ends', file('a ,b \n'), file('a ,b'), 0],
  ['not when lax', file(' a,b \n'), file('a,b'), 1, { strict: false }],
  ['case', file('A'), file('a'), 1, { ignore_case: true }],
  ['any of several gold files', file('b'), [file('a'), file('b')], 1],
  ['no file', null, file('a'), 0],
]);

const gimp = file(
  '# x\n\n(theme "Light")\n(history-item "filters-vignette"\n   1)\n(history-item "filters-blur" 1)\n(hide-docks yes)\n',
);
table('check_config_status', [
  ['key and value', gimp, { key: 'theme', value: '"Light"' }, 1],
  ['another value', gimp, { key: 'hide-docks', value: 'no' }, 0],
  ['two words', gimp, { key: ['history-item', '"filters-blur"'], value: '1' }, 1],
  ['two words, not there', gimp, { key: ['history-item', '"x"'], value: '1' }, 0],
  ['no file', null, { key: 'a', value: 'b' }, 0],
]);
const vlcrc = file(
  '#qt-max-volume=125\nqt-max-volume=200\ninput-record-path=/home/user/Desktop\nqt-bgcone=0\nglobal-key-play-pause=\n',
);
table('check_qt_max_volume', [
  ['set', vlcrc, { expected_qt_max_volume: 200 }, 1],
  ['default', file(''), { expected_qt_max_volume: '125' }, 1],
  ['other', vlcrc, { expected_qt_max_volume: 125 }, 0],
  ['no file', null, { expected_qt_max_volume: 125 }, 0],
]);
table('check_qt_bgcone', [
  ['set', vlcrc, { expected_qt_bgcone: '0' }, 1],
  ['other', vlcrc, { expected_qt_bgcone: '1' }, 0],
]);
table('check_qt_minimal_view', [
  ['default', vlcrc, { expected_qt_minimal_view: 0 }, 1],
  ['other', file('qt-minimal-view=0'), { expected_qt_minimal_view: 1 }, 0],
]);
table('check_one_instance_when_started_from_file', [
  ['default', vlcrc, { expected_one_instance_when_started_from_file: 1 }, 1],
  ['off', file('one-instance-when-started-from-file=0'), { expected_one_instance_when_started_from_file: 1 }, 0],
]);
table('check_play_and_exit', [
  ['default is off', vlcrc, { expected_play_and_exit: 1 }, 0],
  ['on', file('play-and-exit=1'), { expected_play_and_exit: 1 }, 1],
]);
table('is_vlc_recordings_folder', [
  ['there', vlcrc, { recording_file_path: '/home/user/Desktop' }, 1],
  ['elsewhere', vlcrc, { recording_file_path: '/x' }, 0],
  ['commented out', file('#input-record-path=/x'), { recording_file_path: '/x' }, 0],
]);
table('check_global_key_play_pause', [
  ['empty is off', vlcrc, { expected_global_key_play_pause: 0 }, 1],
  ['on', file('global-key-play-pause=Media Play'), { expected_global_key_play_pause: 1 }, 1],
  ['off where on is asked', vlcrc, { expected_global_key_play_pause: 1 }, 0],
]);
table('check_qt_slider_colours', [
  ['default is not dark', file(''), { type: 'blackish' }, 0],
  ['dark', file('qt-slider-colours=1;2;3;99;0;5'), { type: 'blackish' }, 1],
  ['equal', file('qt-slider-colours=1;2;3'), { type: 'match', expected_qt_slider_colours: '1;2;3' }, 1],
]);
const prefs = file(
  '// Mozilla\nuser_pref("a.b", true);\nuser_pref("n", 5);\nuser_pref("s", "Anonym\\nXYZ Lab");\nuser_pref("n", 7);\n',
);
table('check_thunderbird_prefs', [
  ['values', prefs, { expect: { 'a.b': { method: 'eq', ref: true }, s: { method: 're.S', ref: 'Anonym.+XYZ' } } }, 1],
  ['the last line counts', prefs, { expect: { n: { method: 'eq', ref: 5 } } }, 0],
  ['missing', prefs, { expect: { z: { method: 'ne', ref: 1 } } }, 0],
  ['must not be', prefs, { unexpect: { 'a.b': { method: 'eq', ref: true } } }, 0],
  ['missing is not unexpected', prefs, { unexpect: { z: { method: 'eq', ref: 1 } } }, 1],
  ['no file', null, {}, 0],
]);
const filters = file(
  'version="9"\nlogging="no"\nname="Promo"\nenabled="yes"\ntype="17"\naction="Move to folder"\nactionValue="mailbox://x/Promotions"\ncondition="AND (subject,contains,discount)"\n',
);
table('check_thunderbird_filter', [
  [
    'there',
    filters,
    { expect: [{ enabled: 'yes', action: 'Move to folder', condition: ['AND (subject,contains,discount)'] }] },
    1,
  ],
  ['other condition', filters, { expect: [{ condition: ['OR (subject,contains,discount)'] }] }, 0],
  ['must not be', filters, { unexpect: [{ name: 'Promo' }] }, 0],
  ['no file', null, {}, 0],
]);
const mail = (n: number, status = '0001'): string =>
  `FROM - x\nX-Mozilla-Status: ${status}\nSubject: ${n}\n\nbody ${n}\n`;
table('check_thunderbird_folder', [
  ['in any order', file(mail(1) + mail(2)), file(mail(2) + mail(1)), 1],
  ['deleted ones do not count', file(mail(1) + mail(2, '0008')), file(mail(1)), 1],
  ['double ones neither', file(mail(1) + mail(1)), file(mail(1)), 1],
  ['one missing', file(mail(1)), file(mail(1) + mail(2)), 0],
  ['status counts', file(mail(1, '0003')), file(mail(1)), 0],
  ['unless told not to', file(mail(1, '0003')), file(mail(1)), 1, { ignore_status: true }],
  ['several', [file(mail(1)), file(mail(2))], [file(mail(1)), file(mail(2))], 1],
  ['one of several missing', [file(mail(1)), null], [file(mail(1)), file(mail(2))], 0],
]);
const xcu = file(
  '<?xml version="1.0"?>\n<oor:items xmlns:oor="http://openoffice.org/2001/registry">\n<item oor:path="/org.openoffice.Office.Writer/DefaultFont"><prop oor:name="Standard" oor:op="fuse"><value>Times New Roman</value></prop></item>\n' +
    '<item oor:path="/org.openoffice.Office.Common/Save/Document"><prop oor:name="AutoSaveTimeIntervall" oor:op="fuse"><value>3</value></prop></item>\n<item oor:path="/org.openoffice.Office.Impress/Misc/Start"><prop oor:name="EnablePresenterScreen" oor:op="fuse"><value>false</value></prop></item></oor:items>',
);
table('find_default_font', [
  ['set', xcu, { font_name: 'Times New Roman' }, 1],
  ['another', xcu, { font_name: 'Arial' }, 0],
  ['not set', file('<oor:items xmlns:oor="http://openoffice.org/2001/registry"/>'), { font_name: 'Arial' }, 0],
  ['no file', null, { font_name: 'A' }, 0],
]);
table('check_auto_saving_time', [
  ['minutes', xcu, { minutes: 3 }, 1],
  ['other', xcu, { minutes: 5 }, 0],
  ['not set', file('<a/>'), { minutes: 3 }, 0],
]);
table('check_presenter_console_disable', [
  ['off', xcu, undefined, 1],
  ['not set', file('<a/>'), undefined, 0],
  ['no file', null, undefined, 0],
]);

const frame = (name: string, body: Buffer): Buffer => {
  const h = Buffer.alloc(10);
  h.write(name, 0, 'latin1');
  h.writeUInt32BE(body.length, 4);
  return Buffer.concat([h, body]);
};
const id3 = (frames: Buffer[]): Buffer => {
  const b = Buffer.concat(frames);
  const h = Buffer.from([
    0x49,
    0x44,
    0x33,
    3,
    0,
    0,
    (b.length >> 21) & 127,
    (b.length >> 14) & 127,
    (b.length >> 7) & 127,
    b.length & 127,
  ]);
  return Buffer.concat([h, b, Buffer.from([0xff, 0xfb])]);
};
const mp3 = file(
  id3([
    frame('TIT2', Buffer.concat([Buffer.from([0]), Buffer.from('Missing You', 'latin1')])),
    frame('TPE1', Buffer.concat([Buffer.from([1, 0xff, 0xfe]), Buffer.from('程响', 'utf16le')])),
    frame('TCON', Buffer.from([3, ...Buffer.from('a\0b')])),
  ]),
);
table('check_mp3_meta', [
  [
    'tags',
    mp3,
    {
      title: { method: 'eq', ref: 'Missing You' },
      artist: { method: 'eq', ref: '程响' },
      genre: { method: 'eq', ref: 'a,b' },
    },
    1,
  ],
  ['a missing tag is empty', mp3, { album: { method: 'eq', ref: '' } }, 1],
  ['another title', mp3, { title: { method: 'eq', ref: 'x' } }, 0],
  ['no tags', file('RIFF'), { title: { method: 'eq', ref: '' } }, 0],
  ['no file', null, {}, 0],
]);
/** Pictures as far as their headers, which is all that tells their size. */
const chunk = (type: string, body: Buffer): Buffer => {
  const out = Buffer.alloc(12 + body.length);
  out.writeUInt32BE(body.length, 0);
  out.write(type, 4, 'latin1');
  body.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, 8 + body.length)), 8 + body.length);
  return out;
};
const header = Buffer.from([0, 0, 3, 32, 0, 0, 2, 0, 8, 2, 0, 0, 0]);
const png = Buffer.concat([
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
  chunk('IHDR', header),
  chunk('IDAT', Buffer.from([0x78, 0x9c, 3, 0, 0, 0, 0, 1])),
  chunk('IEND', Buffer.alloc(0)),
]);
const jpeg = Buffer.from(
  'ffd8ffe000104a46494600010100000100010000' +
    'ffc00011080200032003011100021101031101' +
    'ffda000c03010002000300003f00ffd9',
  'hex',
);
table('check_image_size', [
  ['PNG height', file(png), { height: 512 }, 1],
  ['PNG width', file(png), { width: 801 }, 0],
  ['JPEG', file(jpeg), { width: 800, height: 512 }, 1],
  ['no picture', file('x'), { height: 1 }, 0],
  ['no file', null, {}, 0],
]);
table('check_image_file_size', [
  ['smaller', file('abc'), { max_size: 4 }, 1],
  ['not smaller', file('abcd'), { max_size: 4 }, 0],
  ['no file', null, { max_size: 4 }, 0],
]);
const status = (state: string): FileValue =>
  file(
    `<root><state>${state}</state><information><category name="meta"><info name="filename">Rick &amp; co.mp4</info><info name='url'>https://x/y</info></category></information></root>`,
  );
table('is_vlc_playing', [
  ['the file', status('playing'), { type: 'file_name', file_name: 'Rick & co.mp4' }, 1],
  ['the URL', status('playing'), { type: 'url', url: 'x/y' }, 1],
  ['paused', status('paused'), { type: 'url', url: 'x/y' }, 0],
  ['another', status('playing'), { type: 'file_name', file_name: 'z' }, 0],
  ['no VLC', null, { type: 'url', url: 'x' }, 0],
]);
