/**
 * `npm run soak -- --minutes M [--json FILE] [--no-window]`: test/soak/README.md says what is measured and what must hold.
 * `--no-window --report FILE`: tells the bars of memory of a recorded file anew, and runs nothing.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { machine, stamp } from '../bench/lib/report.js';
import { reported, type SoakReport } from './report.js';
import { soak } from './soak.js';
import { whyNoWindow } from './window.js';

const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '60' },
      json: { type: 'string' },
      'no-window': { type: 'boolean', default: false },
      report: { type: 'string' },
    },
  }),
  say = (text: string): void => void process.stderr.write(`${text}\n`),
  why = values['no-window'] ? '--no-window' : whyNoWindow();
if (values.report !== undefined) {
  const recorded = reported(JSON.parse(readFileSync(values.report, 'utf8')) as SoakReport);
  writeFileSync(values.report, `${JSON.stringify(recorded, null, 2)}\n`);
  process.exit(0);
}
if (why !== undefined) say(`Extension host and pages are not measured: ${why}`);
const report = await soak({ minutes: Number(values.minutes), window: why === undefined, say });
if (values.json)
  writeFileSync(values.json, `${JSON.stringify({ ...stamp(), machine: machine(), ...report }, null, 2)}\n`);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
process.exit(report.bars.every((b) => b.ok) ? 0 : 1);
