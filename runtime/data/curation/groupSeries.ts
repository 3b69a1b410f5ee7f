import { numbers, type ChartReading, type ChartSource } from './mechanism.js';

/** Size or step cap of every group as it was opened, family by family. */
export async function groupSeries(
  run: ChartSource,
  what: 'size' | 'cap',
): Promise<Extract<ChartReading, { form: 'families' }>> {
  const [family, opened, value] = await run.index.columns(
    `SELECT family, opened_at, ${what} FROM groups ORDER BY family, opened_at`,
  );
  const at = numbers(opened),
    values = numbers(value),
    families = new Map<string, { at: number[]; value: number[] }>();
  (family ?? []).forEach((f, i) => {
    const own = families.get(String(f)) ?? { at: [], value: [] };
    families.set(String(f), own);
    own.at.push(at[i]!);
    own.value.push(values[i]!);
  });
  return { form: 'families', families: [...families].map(([name, own]) => ({ family: name, ...own })) };
}
