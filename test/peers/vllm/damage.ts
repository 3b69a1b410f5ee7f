import { readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Adapters that a server must not answer with. Each changes the files of one that was saved whole. Weights that are no
 * numbers are not among them: what vLLM keeps of them in its cache breaks later calls of whole adapters.
 */

const WEIGHTS = 'adapter_model.safetensors';
const CONFIG = 'adapter_config.json';

interface Header {
  readonly [tensor: string]: { readonly data_offsets?: readonly [number, number] };
}

export const DAMAGE: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  'weights cut off half-way': async (folder) => {
    const { length } = await readFile(join(folder, WEIGHTS));
    await truncate(join(folder, WEIGHTS), length >> 1);
  },
  // As an adapter that was saved for the model inside another one.
  'names of layers that the model does not have': (folder) =>
    rewritten(folder, ({ header }) => header.replaceAll('language_model.layers.', 'language_model.blocks.')),
  'an adapter that changes nothing': emptied,
  "a rank beyond the server's": (folder) => configured(folder, (c) => ({ ...c, r: 64 })),
  'a rank that is not that of the weights': (folder) => configured(folder, (c) => ({ ...c, r: Number(c['r']) / 2 })),
  'no files': (folder) => rm(folder, { recursive: true }),
};

async function configured(folder: string, change: (c: Record<string, unknown>) => object): Promise<void> {
  const file = join(folder, CONFIG);
  await writeFile(file, JSON.stringify(change(JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>)));
}

/** Every tensor that ends an adapter's product (B) is zero. */
function emptied(folder: string): Promise<void> {
  return rewritten(folder, ({ header, data }) => {
    for (const [name, { data_offsets: at }] of Object.entries(JSON.parse(header) as Header))
      if (at && name.includes('lora_B')) data.fill(0, at[0], at[1]);
    return header;
  });
}

/** A safetensors file: the length of the header in 8 bytes, the header as JSON, and the numbers it points into. */
async function rewritten(
  folder: string,
  change: (parts: { readonly header: string; readonly data: Buffer }) => string,
): Promise<void> {
  const file = join(folder, WEIGHTS),
    whole = await readFile(file),
    begin = 8 + Number(whole.readBigUInt64LE(0)),
    data = whole.subarray(begin),
    header = Buffer.from(change({ header: whole.toString('utf8', 8, begin), data })),
    length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  await writeFile(file, Buffer.concat([length, header, data]));
}
