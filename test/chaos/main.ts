/**
 * `npm run chaos -- --kills N --seed S [--json FILE]`: a real run of a real daemon on real desktops, and one fault after
 * another. test/chaos/README.md says what each is and what must hold.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { machine, stamp } from '../bench/lib/report.js';
import { Chaos } from './controller.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
    only: { type: 'string' },
    provider: { type: 'string', default: 'local' },
  },
});
const { provider } = values;
if (provider !== 'local' && provider !== 'docker') throw new Error(`--provider: local or docker, not ${provider}`);
const chaos = new Chaos({
  kills: Number(values.kills),
  seed: Number(values.seed),
  only: values.only?.split(','),
  provider,
});
const report = await chaos.run();
if (values.json)
  writeFileSync(values.json, `${JSON.stringify({ ...stamp(), machine: machine(), ...report }, null, 2)}\n`);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
for (const { words } of report.bars) if (words !== undefined) process.stderr.write(`${words}\n`);
for (const words of report.slow) process.stderr.write(`${words}\n`);
process.exit(report.problems.length + report.slow.length === 0 ? 0 : 1);
