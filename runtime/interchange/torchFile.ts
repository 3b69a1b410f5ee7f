/**
 * Reads and writes `torch.save` files of a dictionary of plain tensors of one dimension, without Python: a ZIP of a
 * pickle and the numbers themselves. Of the pickle only what builds such tensors is understood; nothing is looked up by
 * name and nothing is run.
 */
import { unzipSync, zipSync } from 'fflate';
import { OP, TensorPickle, type Storage, type Tensor } from './torchPickle.js';
import { Unusable } from './types.js';

/** Most bytes of a file, unpacked: more than any answer's tokens and log-probs. */
const MOST = 4 << 20,
  /** Most files of the archive; two tensors take five. */
  MOST_FILES = 16;
const FOLDER = 'archive';

/** Tensors by their names. Throws Unusable for what is no such file, and for tensors of any other kind. */
export function readTensors(file: Uint8Array): ReadonlyMap<string, Tensor> {
  const files = unpacked(file),
    pickle = [...files].find(([name]) => name.endsWith('/data.pkl'));
  if (!pickle) throw new Unusable('has no data.pkl');
  const [name, bytes] = pickle,
    folder = name.slice(0, -'data.pkl'.length);
  if (files.has(`${folder}byteorder`) && new TextDecoder().decode(files.get(`${folder}byteorder`)).trim() !== 'little')
    throw new Unusable('is in the byte order of another kind of machine');
  return new TensorPickle(bytes, (s) => numbersOf(files.get(`${folder}data/${s.key}`), s)).dictionary();
}

function unpacked(file: Uint8Array): ReadonlyMap<string, Uint8Array> {
  let left = MOST,
    files = 0;
  try {
    return new Map(
      Object.entries(
        unzipSync(file, {
          // Both sizes count: an uncompressed file is copied by its other one, and several may name the same bytes.
          filter: ({ size, originalSize }) => {
            left -= Math.max(size, originalSize);
            if (++files > MOST_FILES) throw new Unusable(`holds more than ${MOST_FILES} files`);
            if (left < 0) throw new Unusable(`holds more than ${MOST >> 20} MiB`);
            return true;
          },
        }),
      ),
    );
  } catch (e) {
    throw e instanceof Unusable ? e : new Unusable('is no file of torch.save (a ZIP)');
  }
}

function numbersOf(bytes: Uint8Array | undefined, { kind, length }: Storage): Tensor {
  const width = kind === 'LongStorage' ? 8 : 4;
  if (!bytes || bytes.length !== length * width) throw new Unusable('lacks the numbers of a tensor');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (kind === 'FloatStorage') return Float32Array.from({ length }, (_, i) => view.getFloat32(4 * i, true));
  if (kind === 'IntStorage') return Int32Array.from({ length }, (_, i) => view.getInt32(4 * i, true));
  return Int32Array.from({ length }, (_, i) => {
    const low = view.getInt32(8 * i, true);
    if (view.getInt32(8 * i + 4, true) !== low >> 31) throw new Unusable('has a number beyond 32 bits');
    return low;
  });
}

/** The file that `torch.load` reads as a dictionary of these tensors: float32, and int64 for whole numbers. */
export function writeTensors(tensors: Readonly<Record<string, Tensor>>): Uint8Array {
  const entries = Object.entries(tensors);
  return zipSync(
    {
      [`${FOLDER}/data.pkl`]: pickleOf(entries),
      [`${FOLDER}/byteorder`]: new TextEncoder().encode('little'),
      ...Object.fromEntries(entries.map(([, t], i) => [`${FOLDER}/data/${i}`, bytesOf(t)])),
      [`${FOLDER}/version`]: new TextEncoder().encode('3\n'),
    },
    // Not compressed, as torch has it; and with a fixed time, so that the bytes are the same at any time of day.
    { level: 0, mtime: new Date(1980, 0, 1) },
  );
}
function bytesOf(t: Tensor): Uint8Array {
  if (t instanceof Float32Array) {
    const view = new DataView(new ArrayBuffer(4 * t.length));
    t.forEach((x, i) => view.setFloat32(4 * i, x, true));
    return new Uint8Array(view.buffer);
  }
  const view = new DataView(new ArrayBuffer(8 * t.length));
  t.forEach((x, i) => view.setBigInt64(8 * i, BigInt(x), true));
  return new Uint8Array(view.buffer);
}

/** Protocol 2, as torch writes it, without its memo. */
function pickleOf(entries: readonly (readonly [string, Tensor])[]): Uint8Array {
  const bytes = (s: string): Uint8Array => new TextEncoder().encode(s),
    global = (module: string, name: string): number[] => [OP.GLOBAL, ...bytes(`${module}\n${name}\n`)],
    four = (n: number): number[] => [n & 0xff, (n >> 8) & 0xff, (n >> 16) & 0xff, (n >> 24) & 0xff],
    integer = (n: number): number[] => [OP.BININT, ...four(n)],
    text = (s: string): number[] => [OP.BINUNICODE, ...four(bytes(s).length), ...bytes(s)],
    tuple = (...values: readonly number[][]): number[] => [OP.MARK, ...values.flat(), OP.TUPLE];
  const tensors = entries.flatMap(([name, t], i) => {
    const kind = t instanceof Float32Array ? 'FloatStorage' : 'LongStorage',
      storage = tuple(text('storage'), global('torch', kind), text(String(i)), text('cpu'), integer(t.length)),
      hooks = [...global('collections', 'OrderedDict'), OP.EMPTY_TUPLE, OP.REDUCE];
    // Offset, size, stride, whether it has a gradient.
    const shape = [integer(0), [...integer(t.length), OP.TUPLE1], [...integer(1), OP.TUPLE1], [OP.NEWFALSE]];
    return [
      ...text(name),
      ...global('torch._utils', '_rebuild_tensor_v2'),
      ...tuple([...storage, OP.BINPERSID], ...shape, hooks),
      OP.REDUCE,
    ];
  });
  return Uint8Array.from([OP.PROTO, 2, OP.EMPTY_DICT, OP.MARK, ...tensors, OP.SETITEMS, OP.STOP]);
}
