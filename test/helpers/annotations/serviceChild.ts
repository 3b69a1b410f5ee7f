/** Edits one trajectory again and again and says each revision that was answered, until it is killed. */
import * as m from '../../../runtime/protocol/methods.js';
import type { AnnotationView } from '../../../runtime/protocol/types.js';
import { createStudioService } from '../../../runtime/service/index.js';

const [bundle, run, rollout, cacheDir] = process.argv.slice(2) as [string, string, string, string];
const service = createStudioService({ entry: { file: bundle }, cacheDir, log: () => undefined }),
  edit = service.handlers.get(m.editAnnotations.method)!;
for (let base = 0; ;) {
  const v = (await edit(
    { run, rollout, base, ops: [{ op: 'note', text: `note ${base + 1}` }] },
    { signal: new AbortController().signal, notify: () => undefined },
  )) as AnnotationView;
  base = v.revision;
  process.stdout.write(`${base}\n`);
}
