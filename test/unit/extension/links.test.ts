import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linkText, parseLink } from '../../../extension/model/links.js';

const parse = (link: string) => {
  const url = new URL(link);
  return parseLink(url.pathname, url.search.slice(1));
};

describe('links', () => {
  it('come back as what they were made of', () => {
    for (const l of [
      { run: '2026-11-22-1130-quickstart-s1' },
      { run: 'my run', rollout: 'probe/final/v14/31' },
      { run: 'r', rollout: 'demo/desk/form-one#2000000', step: 3 },
    ])
      expect(parse(linkText('vscode', 'dart-studio.dart-studio', l))).toEqual(l);
    expect(linkText('vscode', 'dart-studio.dart-studio', { run: 'a b', rollout: 'r1', step: 2 })).toBe(
      'vscode://dart-studio.dart-studio/open?run=a+b&rollout=r1&step=2',
    );
  });

  it('that are anything else are nothing: no paths, no other questions, nothing twice', () => {
    for (const [path, query] of [
      ['/open', ''],
      ['/', 'run=r'],
      ['/open/../start', 'run=r'],
      ['/start', 'run=r'],
      ['/open', 'run=../../etc'],
      ['/open', 'run=/etc/passwd'],
      ['/open', 'run=..'],
      ['/open', 'run=C:\\x'],
      ['/open', 'run=r&run=s'],
      ['/open', 'run=r&command=dartStudio.startTraining'],
      ['/open', 'run=r&step=1'],
      ['/open', 'run=r&rollout=x&step=0'],
      ['/open', 'run=r&rollout=x&step=-1'],
      ['/open', 'run=r&rollout=x&step=1e3'],
      ['/open', 'run=r&rollout=<b>'],
      ['/open', 'run=r&rollout=a%00b'],
      ['/open', `run=${'r'.repeat(300)}`],
      ['/open', `run=r&rollout=${'x'.repeat(3000)}`],
      ['/open', 'run=a%0ab'],
      ['/open', 'run=a%E2%80%AEb'],
    ] as const)
      expect(parseLink(path, query), `${path}?${query}`).toBeUndefined();
  });

  it('never throw, and name at most a run, a rollout and a step', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'binary' }), (path, query) => {
        const l = parseLink(path, query);
        if (l) expect(Object.keys(l).every((k) => ['run', 'rollout', 'step'].includes(k))).toBe(true);
      }),
    );
  });
});
