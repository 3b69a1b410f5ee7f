import type { BuildProgress } from '../service/desktopImage.js';
import { statusLine, tell } from './output.js';

/** Prints one line rewritten in place on a terminal; a line per phase elsewhere. */
export function buildProgress(): { on: (p: BuildProgress) => void; end: () => void } {
  const line = statusLine();
  let phase = '';
  return {
    on: (p) => {
      const text = `${p.fraction === undefined ? '' : `${String(Math.round(p.fraction * 100)).padStart(3)} %  `}${p.message}`;
      line.show(text);
      if (!process.stderr.isTTY && (p.phase !== phase || p.phase === 'done')) tell(`${text}\n`);
      phase = p.phase;
    },
    end: () => {
      line.clear();
    },
  };
}
