import { deflateSync } from 'node:zlib';
import { PNG_SIGNATURE, pngChunk } from '../../../runtime/files/pngWriter.js';
import type { FileValue, Value } from '../../../runtime/tasks/values.js';
import { caseTables, file } from './metricCase.js';

/** Settings of applications, and media. */
const { cases, table } = caseTables();
export const appMetricCases = cases;

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
/** As Thunderbird writes it: the first line says when it was put into the folder. */
const mail = (n: number, status = '0001', at = 'Tue Jan 30 08:12:05 2024'): string =>
  `From - ${at}\nX-Mozilla-Status: ${status}\nX-Mozilla-Status2: 00000000\nFrom: a <a@example.com>\nSubject: ${n}\n\nbody ${n}\n>From - here\n\n`;
table('check_thunderbird_folder', [
  ['in any order', file(mail(1) + mail(2)), file(mail(2) + mail(1)), 1],
  ['put there at another time', file(mail(1, '0001', 'Mon Feb 12 20:00:00 2024')), file(mail(1)), 1],
  ['deleted ones do not count', file(mail(1) + mail(2, '0008')), file(mail(1)), 1],
  ['nor do they hide others', file(mail(1) + mail(2, '0008')), file(mail(3) + mail(2, '0008')), 0],
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
const header = Buffer.from([0, 0, 3, 32, 0, 0, 2, 0, 8, 2, 0, 0, 0]);
const png = Buffer.concat([
  PNG_SIGNATURE,
  pngChunk('IHDR', header),
  pngChunk('IDAT', Buffer.from([0x78, 0x9c, 3, 0, 0, 0, 0, 1])),
  pngChunk('IEND', Buffer.alloc(0)),
]);
const jpeg = Buffer.from(
  'ffd8ffe000104a46494600010100000100010000' +
    'ffc00011080200032003011100021101031101' +
    'ffda000c03010002000300003f00ffd9',
  'hex',
);
/** A PNG of these rows of samples. */
const pixels = (
  rows: readonly (readonly number[])[],
  type: number,
  depth = 8,
  width = 4,
  tRNS?: number[],
): FileValue => {
  const head = Buffer.from([0, 0, 0, width, 0, 0, 0, rows.length, depth, type, 0, 0, 0]);
  return file(
    Buffer.concat([
      PNG_SIGNATURE,
      pngChunk('IHDR', head),
      ...(type === 3 ? [pngChunk('PLTE', Buffer.from([9, 9, 9, 8, 8, 8, 7, 7, 7]))] : []),
      ...(tRNS ? [pngChunk('tRNS', Buffer.from(tRNS))] : []),
      pngChunk('IDAT', deflateSync(Buffer.from(rows.flatMap((row) => [0, ...row])))),
      pngChunk('IEND', Buffer.alloc(0)),
    ]),
  );
};
/** Two pixels of four, in the second of three rows. */
const row = (hidden: readonly number[], shown: readonly number[]): number[] => [
    ...hidden,
    ...shown,
    ...shown,
    ...hidden,
  ],
  framed = (hidden: number[], shown: number[], type: number, depth = 8, tRNS?: number[]): FileValue =>
    pixels([row(hidden, hidden), row(hidden, shown), row(hidden, hidden)], type, depth, 4, tRNS),
  inner = { width: 2, height: 1 },
  visible = { ...inner, ignore_transparent: true };
table('check_image_size', [
  ['what shows of RGBA', framed([5, 5, 5, 0], [5, 5, 5, 1], 6), visible, 1],
  ['RGBA where transparency counts', framed([5, 5, 5, 0], [5, 5, 5, 1], 6), inner, 0],
  ['what shows of grey and alpha', framed([5, 0], [5, 255], 4), visible, 1],
  ['what shows of 16 bits', framed([1, 1, 0, 9], [1, 1, 9, 0], 4, 16), visible, 1],
  ['nothing shows', framed([5, 0], [5, 0], 4), { width: 0, height: 0, ignore_transparent: true }, 1],
  ['RGB has no transparency', framed([1, 2, 3], [3, 2, 1], 2), { width: 4, height: 3, ignore_transparent: true }, 1],
  ['a colour that is transparent, whatever the rule', framed([1, 2, 3], [3, 2, 1], 2, 8, [0, 1, 0, 2, 0, 3]), inner, 1],
  ['a grey that is transparent', framed([1], [2], 0, 8, [0, 1]), inner, 1],
  ['a transparent entry of the palette', framed([1], [2], 3, 8, [255, 0]), inner, 1],
  [
    'half a byte a pixel',
    pixels(
      [
        [0x11, 0x11],
        [0x12, 0x21],
        [0x11, 0x11],
      ],
      3,
      4,
      4,
      [255, 0],
    ),
    inner,
    1,
  ],
  ['black of one bit', pixels([[0x00], [0x60], [0x00]], 0, 1, 4, [0, 0]), inner, 1],
  [
    'half a byte of grey, as wide as a byte',
    pixels(
      [
        [0x11, 0x11],
        [0x12, 0x21],
        [0x11, 0x11],
      ],
      0,
      4,
      4,
      [0, 17],
    ),
    inner,
    1,
  ],
  ['16 bits of grey', framed([1, 7], [2, 7], 0, 16, [1, 7]), { width: 4, height: 3 }, 1],
  ['16 bits a colour', framed([1, 7, 1, 7, 1, 7], [2, 7, 2, 7, 2, 7], 2, 16, [0, 1, 0, 1, 0, 1]), inner, 1],
  ['damaged pixels', file(framed([5, 0], [5, 9], 4).data.subarray(0, 50)), { height: 3, ignore_transparent: true }, 0],
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
/** As VLC 3 writes it: what is played stands under any of several names, and `url` is none of a stream's. */
const status = (infos: Readonly<Record<string, string>>, state = 'playing'): FileValue =>
  file(
    `<?xml version="1.0" encoding="utf-8" standalone="yes" ?>\n<root><time>3</time><state>${state}</state><information><category name="meta">` +
      Object.entries(infos)
        .map(([name, text]) => `<info name='${name}'>${text}</info>`)
        .join('') +
      `</category><category name='Stream 0'><info name='Type'>Video</info><info name='Codec'>H264 - MPEG-4 AVC (part 10) (avc1)</info></category></information></root>`,
  );
const plays = (url: string): Value => ({ type: 'url', url }),
  playsFile = (file_name: string): Value => ({ type: 'file_name', file_name }),
  youtube = 'https://www.youtube.com/watch?v=pgBsyTKAwLw',
  hls = 'https://cdn.example/live/x/master.m3u8?token=1';
table('is_vlc_playing', [
  ['the file', status({ filename: 'Rick &amp; co.mp4' }), playsFile('Rick & co.mp4'), 1],
  ['the file by its title', status({ title: 'a.mp4' }), playsFile('a.mp4'), 1],
  ['the file by its place', status({ uri: 'file:///home/user/a.mp4' }), playsFile('a.mp4'), 1],
  ['the file where its first name is empty', status({ filename: '', location: '/a.mp4' }), playsFile('a.mp4'), 1],
  ['the first name counts', status({ filename: 'b.mp4', title: 'a.mp4' }), playsFile('a.mp4'), 0],
  ['paused', status({ filename: 'a' }, 'paused'), playsFile('a'), 0],
  ['another', status({ filename: 'a' }), playsFile('z'), 0],
  ['the URL', status({ url: hls }), plays(hls), 1],
  ['the URL in a longer one', status({ title: `${youtube}&amp;t=1` }), plays(youtube), 1],
  ['the URL under another name', status({ location: youtube }), plays(youtube), 1],
  ['the URL by its file name alone', status({ filename: 'master.m3u8' }), plays(hls), 1],
  ['the URL of the same host and path', status({ URI: 'http://cdn.example/live/x/master.m3u8#2' }), plays(hls), 1],
  ['the path without its parameters', status({ URI: 'http://h/a;x=1' }), plays('http://h/a;y=2'), 1],
  ['the path of another host', status({ URI: 'https://cdn2.example/live/x/master.m3u8' }), plays(hls), 0],
  ['a part of the URL', status({ filename: 'watch?v=pgBsyTKAwLw' }), plays(youtube), 0],
  ['a stream without a name', status({}), plays(youtube), 0],
  ['no VLC', null, plays('x'), 0],
]);
