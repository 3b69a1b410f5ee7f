import type { Alert } from './watchdog.js';
import { printable, printableJson, printableLine } from '../foreign/terminalText.js';
import { duration, percent, sparkline } from '../domain/stats.js';

/** The progress of a run as the terminal shows it; with `--json` the same record is written as one JSON line. */
export interface RunProgress {
  readonly phase:
    'starting' | 'reading' | 'demonstrations' | 'warm start' | 'training' | 'evaluating' | 'stopping' | 'done';
  readonly elapsedMs: number;
  readonly version: number;
  readonly rollouts: number;
  readonly rolloutsPerHour: number;
  readonly stepsPerMinute: number;
  readonly trainedActionsPerMinute: number;
  readonly success: number;
  readonly curve: readonly number[];
  readonly desktopUtilisation: number;
  readonly replicaUtilisation: number;
  readonly trainerUtilisation: number;
  readonly replicaVersions: readonly number[];
  readonly running: number;
  readonly waitingGroups: number;
  readonly errors: number;
  /** Message of the newest error. */
  readonly newestError?: string | undefined;
  readonly detail?: string;
}

interface TerminalReporterOptions {
  readonly now?: () => number;
  /** How notes are put for whoever reads them here. */
  readonly words?: (text: string) => string;
}

export function statusLine(s: RunProgress): string {
  const parts = [duration(s.elapsedMs), s.phase + (s.detail ? ` (${s.detail})` : '')];
  if (s.phase === 'training' || s.phase === 'evaluating') {
    parts.push(
      `last 64 rollouts ${percent(s.success)} ${sparkline(s.curve)}`,
      `v${s.version}`,
      `${s.rollouts} rollouts, ${Math.round(s.rolloutsPerHour)}/h`,
      `desktops ${percent(s.desktopUtilisation)}`,
      `replicas ${percent(s.replicaUtilisation)} (v${[...new Set(s.replicaVersions)].join(', v')})`,
      `trainer ${percent(s.trainerUtilisation)}`,
    );
    if (s.errors > 0)
      parts.push(
        `${s.errors} errors${s.newestError === undefined ? '' : ` (newest: ${s.newestError.replace(/\s+/g, ' ').slice(0, 120)})`}`,
      );
  }
  return printableLine(parts.join(' · '));
}

/**
 * Where progress goes: one line rewritten in place on a terminal, occasional plain lines elsewhere, JSON lines with
 * `--json`.
 */
export interface Reporter {
  status(s: RunProgress): void;
  note(text: string, data?: Record<string, unknown>): void;
  /** Called besides `note` with the same message. */
  alert?(a: Alert): void;
  end(): void;
}

export function terminalReporter(
  out: NodeJS.WriteStream,
  { now = Date.now, words = (text) => text }: TerminalReporterOptions = {},
): Reporter {
  let shown = '';
  let last = 0;
  const clear = (): void => {
    if (shown) {
      out.write('\r\x1b[2K');
      shown = '';
    }
  };
  return {
    status(s) {
      const line = statusLine(s);
      if (out.isTTY) {
        const cut = line.slice(0, Math.max(20, (out.columns ?? 120) - 1));
        clear();
        out.write(cut);
        shown = cut;
        return;
      }
      // A log file gets a line every 15 s, not one a second.
      if (now() - last >= 15_000) {
        last = now();
        out.write(line + '\n');
      }
    },
    note(text) {
      clear();
      out.write(`${printable(words(text))}\n`);
    },
    end() {
      clear();
    },
  };
}

export function jsonReporter(out: NodeJS.WritableStream): Reporter {
  const write = (o: unknown): void => {
    out.write(`${printableJson(JSON.stringify(o))}\n`);
  };
  return {
    status: (s) => write({ type: 'status', at: Date.now(), ...s }),
    note: (text, data) => write({ type: 'note', at: Date.now(), text, ...data }),
    end: () => {},
  };
}
