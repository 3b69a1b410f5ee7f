/** `npm run soak -- --minutes M [--json FILE]`: test/soak/README.md says what is measured and what must hold. */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { soak } from './soak.js';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' }, json: { type: 'string' } } });
const report = await soak(Number(values.minutes), (text) => process.stderr.write(`${text}\n`));
if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
process.exit(report.bars.every((b) => b.ok) ? 0 : 1);
