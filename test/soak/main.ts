/** `npm run soak -- --minutes M [--json FILE] [--no-window]`: test/soak/README.md says what is measured and what must hold. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { machine, stamp } from '../bench/lib/report.js';
import { soak } from './soak.js';
import { whyNoWindow } from './window.js';

const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '60' },
      json: { type: 'string' },
      'no-window': { type: 'boolean', default: false },
    },
  }),
  say = (text: string): void => void process.stderr.write(`${text}\n`),
  why = values['no-window'] ? '--no-window' : whyNoWindow();
if (why !== undefined) say(`Extension host and pages are not measured: ${why}`);
const report = await soak({ minutes: Number(values.minutes), window: why === undefined, say });
if (values.json)
  writeFileSync(values.json, `${JSON.stringify({ ...stamp(), machine: machine(), ...report }, null, 2)}\n`);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
process.exit(report.bars.every((b) => b.ok) ? 0 : 1);
