import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { StudioError } from '../../runtime/domain/index.js';
import { labelName } from '../../runtime/protocol/runLabel.js';
import { ScreenFile } from '../../runtime/run/backends/screenFile.js';
import { labelOf } from '../../runtime/service/runLabels.js';
import { readCheckpoint, writeCheckpoint } from '../../runtime/trainer/checkpoint.js';
import { layoutDigest, loadCheckpoint } from '../../runtime/trainer/native/persistence.js';
import { readState, writeState } from '../../runtime/trainer/remote/savedState.js';
import { tinyModel } from '../helpers/trainer/tinyModel.js';
import { changedCopy, Folder } from './folder.js';
import type { Target } from './fuzz.js';
import { mutatedBytes, mutatedJson, mutatedValue } from './mutate.js';

/** What else lies in a run folder: screens of reading lessons, what people call the run, what they said of it. */
export function besides(): Target {
  const folder = new Folder();
  let lines: Buffer;
  return {
    name: 'files beside a journal',
    async open() {
      await folder.open();
      const screens = Array.from({ length: 3 }, (_, i) => ({
        obs: new Uint8Array(4000).fill(i),
        buckets: Int32Array.of(1, 2),
        boxes: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
        marks: Float32Array.of(1, 2, 3),
      }));
      await new ScreenFile(join(folder.path, 'good')).save('key', screens);
      lines = inflateRawSync(await readFile(join(folder.path, 'good')));
    },
    async make(r) {
      const at = join(folder.path, 'case'),
        bad = mutatedBytes(r, lines);
      // Deflated again, so that what lies behind that is reached; and no short file that becomes a very long one.
      const bomb = r.int(20) === 0 ? Buffer.concat([bad, Buffer.alloc(8 << 20, 32)]) : bad;
      await writeFile(at, r.int(4) === 0 ? mutatedBytes(r, deflateRawSync(bomb)) : deflateRawSync(bomb));
      const label = mutatedJson(r, JSON.stringify({ name: 'a', notes: 'b', tags: ['c'], group: 'd', pinned: true }));
      await writeFile(join(folder.path, labelName), label);
      return {
        input: `${bad.subarray(0, 2000).toString('latin1')}\n${label.slice(0, 2000)}`,
        run: async () => {
          const screens = await new ScreenFile(at).load();
          const { name, tags } = await labelOf(folder.path);
          if (name !== undefined && typeof name !== 'string') throw new TypeError('a name that is none');
          for (const t of tags ?? []) if (typeof t !== 'string') throw new TypeError('a tag that is none');
          // Nobody hears of screens that cannot be read; here it is told apart from those that can.
          if (!screens) throw new StudioError('store.damaged', 'The screens are drawn again.', '');
        },
      };
    },
    close: () => folder.close(),
  };
}

export function checkpoints(): Target {
  const folder = new Folder(),
    model = { base: 'm', rank: 8 },
    tiny = tinyModel(),
    head = { policy: 'p', layout: 'l', values: { version: 1 } };
  return {
    name: 'checkpoints',
    async open() {
      await folder.open();
      await writeState(folder.path, model, {
        version: 1,
        updateSteps: 2,
        weights: 'tinker://x',
        reference: null,
        model: 'm',
        session: 's',
        seq: 3,
      });
      await writeCheckpoint(join(folder.path, 'native'), head, {
        'weights.f32': Buffer.alloc(4096),
        'policy.onnx': Buffer.from('\x08\x08onnx'),
      });
    },
    async make(r) {
      const dir = join(folder.path, 'case');
      if (r.int(3) === 0) {
        // Whole by its checksums: what it says is a stranger's all the same.
        const values = mutatedValue(r, { version: 1, adamSteps: 2, updateSteps: 3, rng: [1, 2, 3, 4] }),
          arrays = ['weights.f32', 'adam_m.f32', 'adam_v.f32', 'reference.f32'],
          bytes = tiny.layout.total * 4 + (r.int(4) === 0 ? r.int(9) - 4 : 0);
        await rm(dir, { recursive: true, force: true });
        try {
          await writeCheckpoint(
            dir,
            { policy: tiny.spec.id, layout: layoutDigest(tiny), values: values as Record<string, unknown> },
            Object.fromEntries(arrays.filter(() => r.int(9) > 0).map((n) => [n, Buffer.alloc(bytes, 1)])),
          );
        } catch (e) {
          // Indented, many copies of deep lists are longer than a text can be: nobody can have written them.
          if (e instanceof RangeError) return this.make(r);
          throw e;
        }
        return { input: JSON.stringify(values), run: () => loadCheckpoint(dir, tiny) };
      }
      const remote = r.int(2) === 0,
        input = await changedCopy(r, join(folder.path, remote ? 'v000001' : 'native'), dir);
      return { input, run: () => (remote ? readState(dir, model) : readCheckpoint(dir, head)) };
    },
    close: () => folder.close(),
  };
}
