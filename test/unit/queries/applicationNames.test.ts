import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applicationName, applicationNames, taskGroupOf } from '../../../runtime/protocol/applicationNames.js';
import { isPartial, meanScore, scoreText } from '../../../runtime/protocol/scores.js';

describe('the name of an application', () => {
  it.each([
    ['LibreOffice Calc', ['libreoffice_calc', 'libreoffice calc', 'calc', 'LibreOffice-Calc', 'excel']],
    ['LibreOffice Writer', ['libreoffice_writer', 'writer']],
    ['LibreOffice Impress', ['libreoffice_impress', ' Impress ']],
    ['VS Code', ['vscode', 'vs_code', 'VS Code', 'code']],
    ['Chrome', ['chrome', 'browser', 'google-chrome', 'chromium']],
    ['VLC', ['vlc', 'ubuntu_media_player']],
    ['os', ['os', 'OS']],
    ['terminal', ['terminal', 'xterm']],
    ['pdf', ['pdf', 'PDF Viewer']],
    ['image', ['image']],
    ['files', ['file manager', 'pcmanfm']],
    ['picard', ['Picard']],
    ['codec', ['codec']],
  ])('is %s in every spelling', (name, spellings) => {
    expect(spellings.map(applicationName)).toEqual(spellings.map(() => name));
  });
  it('is there once, and never empty', () => {
    expect(applicationNames(['calc', '', 'libreoffice_calc', ' _ ', 'os'])).toEqual(['LibreOffice Calc', 'os']);
  });
  it('is unchanged when it is named again', () => {
    fc.assert(fc.property(fc.string(), (s) => applicationName(applicationName(s)) === applicationName(s)));
  });
});

describe('what a task is listed under', () => {
  it('is the folder of its file where that is one of OSWorld’s, as the command line has it', () => {
    expect(taskGroupOf({ domain: 'multi_apps', apps: ['libreoffice_writer'] })).toBe('');
    expect(taskGroupOf({ domain: 'vs_code', apps: ['vscode', 'os'] })).toBe('VS Code');
  });
  it('else its application, of several or of none', () => {
    expect(
      [['calc', 'libreoffice calc'], ['calc', 'os'], [], undefined].map((apps) =>
        taskGroupOf({ domain: 'constructor', ...(apps ? { apps } : {}) }),
      ),
    ).toEqual(['LibreOffice Calc', '', undefined, undefined]);
  });
});

describe('a partial score', () => {
  it('is a failure with a part of the reward', () => {
    expect(([0, 0.7, 1, undefined, null, NaN] as const).map((reward) => isPartial('failure', reward))).toEqual([
      false,
      true,
      false,
      false,
      false,
      false,
    ]);
    expect([isPartial('success', 0.7), isPartial('error', 0.7)]).toEqual([false, false]);
  });
  it('never reads as nothing or as all', () => {
    expect([0.7, 1 / 3, 0.999, 0.001, 1e-9].map(scoreText)).toEqual(['0.7', '0.33', '0.999', '0.001', '1e-9']);
  });
  it('counts by episodes in a mean', () => {
    expect(meanScore([])).toBeUndefined();
    expect(
      meanScore([
        { episodes: 3, successes: 1 },
        { episodes: 1, successes: 0, score: 0.6 },
      ]),
    ).toBeCloseTo(0.4);
  });
});
