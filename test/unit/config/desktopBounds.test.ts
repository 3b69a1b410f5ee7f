import { expect, it } from 'vitest';
import { parseRunFile, type RunFile } from '../../../runtime/config/index.js';

it.each([
  ['desktops.count', { count: 1025 }, { count: 1024 }],
  ['desktops.screen.width', { screen: { width: 63 } }, { screen: { width: 64 } }],
  ['desktops.screen.height', { screen: { height: 8193 } }, { screen: { height: 8192 } }],
  ['desktops.memoryMb', { memoryMb: 127 }, { memoryMb: 128 }],
  ['desktops.pids', { pids: 31 }, { pids: 32 }],
] satisfies [string, RunFile['desktops'], RunFile['desktops']][])(
  '%s has bounds: outside them no desktop comes up',
  (key, outside, inside) => {
    expect(() => parseRunFile({ desktops: outside })).toThrow(key);
    expect(() => parseRunFile({ desktops: inside })).not.toThrow();
  },
);
