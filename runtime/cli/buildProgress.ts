import type { BuildProgress } from '../service/desktopImage.js';

/** One line rewritten in place on a terminal; a line a phase elsewhere. */
export function buildProgress(): { on: (p: BuildProgress) => void; end: () => void } {
  let phase = '';
  return {
    on: (p) => {
      const text = `${p.fraction === undefined ? '' : `${String(Math.round(p.fraction * 100)).padStart(3)} %  `}${p.message}`;
      if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text.slice(0, (process.stderr.columns ?? 100) - 1)}`);
      else if (p.phase !== phase || p.phase === 'done') process.stderr.write(`${text}\n`);
      phase = p.phase;
    },
    end: () => {
      if (process.stderr.isTTY) process.stderr.write('\r\x1b[2K');
    },
  };
}
