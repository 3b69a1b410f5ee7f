// A reporter of Vitest: how long each layer took, hooks included, and its slowest files. What Vitest caught outside tests,
// which its JSON report leaves out, goes to the file that DART_STUDIO_CAUGHT names.
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

const MOST = 16;

export default class Times {
  #layers = new Map();
  onTestModuleEnd(module) {
    const files = this.#layers.get(module.project.name) ?? [];
    files.push({ file: relative(process.cwd(), module.moduleId), ms: module.diagnostic().duration });
    this.#layers.set(module.project.name, files);
  }
  onTestRunEnd(_modules, caught) {
    const file = process.env.DART_STUDIO_CAUGHT;
    if (file && caught.length > 0) writeFileSync(file, JSON.stringify(caught.map((e) => e.stack ?? e.message)));
    for (const [layer, files] of this.#layers) for (const line of timeLines(layer, files)) console.log(line);
  }
}

function timeLines(layer, files) {
  const seconds = (ms) => `${Math.round(ms / 1000)} s`.padStart(7);
  return [
    `${layer}: ${seconds(files.reduce((sum, f) => sum + f.ms, 0)).trim()} in ${files.length} files`,
    ...files
      .toSorted((a, b) => b.ms - a.ms)
      .slice(0, MOST)
      .map((f) => `${seconds(f.ms)}  ${f.file}`),
  ];
}
