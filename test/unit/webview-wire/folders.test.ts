import { describe, expect, it } from 'vitest';
import { namesBelow, uriBelow } from '../../../webview/folders.js';

describe('what lies below a folder', () => {
  const roots = [
    { path: '/u/cache', uri: 'page:/u/cache' },
    { path: 'c:\\u\\cache', uri: 'page:/c%3A/u/cache/' },
    { path: '\\\\host\\share', uri: 'page://host/share' },
  ];
  it.each([
    ['/u/cache/thumbs/320/ab/x.png', 'page:/u/cache/thumbs/320/ab/x.png'],
    ['/u/cache/r 1/100%#.png', 'page:/u/cache/r%201/100%25%23.png'],
    ['c:\\u\\cache\\thumbs\\320\\ab\\x.png', 'page:/c%3A/u/cache/thumbs/320/ab/x.png'],
    // As Node writes the drive, and a page that puts names behind a folder.
    ['C:\\u\\cache\\thumbs/ab/x.png', 'page:/c%3A/u/cache/thumbs/ab/x.png'],
    ['\\\\host\\share\\x.png', 'page://host/share/x.png'],
  ])('%s', (path, uri) => {
    expect(uriBelow(roots, path)).toBe(uri);
  });
  it.each([
    '/u/cache',
    '/u/cache/',
    '/u/cached/x.png',
    '/U/cache/x.png',
    'u/cache/x.png',
    'cache/x.png',
    '/u/cache/../secret.png',
    '/u/cache/a/../../secret.png',
    '/u/cache/a\\..\\..\\secret.png',
    '/u/cache/..',
    'c:\\u\\cache',
    'c:\\u\\cached\\x.png',
    'd:\\u\\cache\\x.png',
    'c:\\U\\cache\\x.png',
    'c:x.png',
    'c:\\u\\cache\\..\\secret.png',
    'c:\\u\\cache\\a\\..\\..\\secret.png',
    'c:\\u\\cache\\a/../..\\secret.png',
    'c:/u/cache/../secret.png',
    // Windows takes these for `..`, too.
    'c:\\u\\cache\\.. \\secret.png',
    'c:\\u\\cache\\...\\secret.png',
    '',
  ])('%j is in none', (path) => {
    expect(uriBelow(roots, path)).toBeUndefined();
  });
  it('a whole drive and the root have all that is theirs', () => {
    expect(namesBelow('c:\\', 'C:\\x.png')).toEqual(['x.png']);
    expect(namesBelow('/', '/etc/x.png')).toEqual(['etc', 'x.png']);
    expect(namesBelow('/', 'etc/x.png')).toBeUndefined();
    expect(namesBelow('/u/cache/', '/u/cache/..x/.y.png')).toEqual(['..x', '.y.png']);
  });
});
