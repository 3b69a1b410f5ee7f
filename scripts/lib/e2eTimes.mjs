// A reporter of Vitest: how long the files of the end-to-end project took, hooks included, slowest first.
import { relative } from 'node:path';

const MOST = 10;

export default class E2eTimes {
  #files = [];
  onTestModuleEnd(module) {
    if (module.project.name === 'e2e')
      this.#files.push({ file: relative(process.cwd(), module.moduleId), ms: module.diagnostic().duration });
  }
  onTestRunEnd() {
    for (const line of timeLines(this.#files)) console.log(line);
  }
}

function timeLines(files) {
  if (files.length === 0) return [];
  const seconds = (ms) => `${Math.round(ms / 1000)} s`.padStart(7);
  return [
    `End to end: ${seconds(files.reduce((sum, f) => sum + f.ms, 0)).trim()} in ${files.length} files`,
    ...files
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, MOST)
      .map((f) => `${seconds(f.ms)}  ${f.file}`),
  ];
}
