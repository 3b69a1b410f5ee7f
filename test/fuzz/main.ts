import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fuzz } from './fuzz.js';
import { rpcFrames } from './rpc.js';
import { inProcess } from './targets.js';

/** `npm run fuzz -- --minutes M --seed S --json FILE [--target NAME] [--case N]` */
const { values: v } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
    target: { type: 'string' },
    case: { type: 'string' },
  },
});
const all = [...inProcess(), rpcFrames()],
  targets = v.target === undefined ? all : all.filter((t) => t.name === v.target);
if (targets.length === 0) {
  process.stderr.write(`No target '${v.target}': ${all.map((t) => t.name).join(', ')}.\n`);
  process.exit(2);
}
const report = await fuzz({
  seed: Number(v.seed),
  ms: Number(v.minutes) * 60_000,
  targets,
  ...(v.case === undefined ? {} : { only: Number(v.case) }),
  log: (line) => process.stderr.write(`${line}\n`),
});
const text = `${JSON.stringify(report, null, 1)}\n`;
if (v.json) writeFileSync(v.json, text);
process.stdout.write(text);
process.exit(report.failures.length > 0 ? 1 : 0);
