import { type Value } from '../../../runtime/tasks/values.js';
import { caseTables, file, notText } from './metricCase.js';

/** Texts, lists, tables and JSON. */
const { cases, table, faults } = caseTables();
export const textMetricCases = cases;

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
  ['a byte order mark is no blank', file('\ufeffa'), file('a'), 0, { ignore_blanks: true }],
  ['information separators are', file('\x1fa\x1c\x85b\u2003'), file('a b'), 1, { ignore_blanks: true }],
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
  ['Latin-1 on both sides', file(Buffer.from('caf\xe9,1\r\n', 'latin1')), file(Buffer.from('caf\xe9,1', 'latin1')), 1],
  ['Latin-1 as UTF-8 has it', file(Buffer.from('caf\xe9', 'latin1')), file('café'), 1],
  ['another letter of Latin-1', file(Buffer.from('caf\xe8', 'latin1')), file('café'), 0],
  ['a byte order mark when lax', file('\ufeffa'), file('a'), 0, { strict: false }],
  ['no file', null, file('a'), 0],
]);
