import type { BuildProgress } from '../service/desktopImage.js';
import { statusOnTerminal, tell } from './output.js';

/** Prints one line rewritten in place on a terminal; a line per phase elsewhere. */
export function buildProgress(): { on: (p: BuildProgress) => void; end: () => void } {
  let phase = '';
  return {
    on: (p) => {
      const text = `${p.fraction === undefined ? '' : `${String(Math.round(p.fraction * 100)).padStart(3)} %  `}${p.message}`;
      statusOnTerminal.show(text);
      if (!process.stderr.isTTY && (p.phase !== phase || p.phase === 'done')) tell(`${text}\n`);
      phase = p.phase;
    },
    end: () => {
      statusOnTerminal.clear();
    },
  };
}
