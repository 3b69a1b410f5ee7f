import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A new temporary folder with OSWorld's task files (test/fixtures/osworld), one folder a domain; the caller removes it. */
export async function osworldExamples(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'osworld-'));
  const lines = (await readFile('test/fixtures/osworld/tasks.jsonl', 'utf8')).split('\n').filter((l) => l !== '');
  for (const line of lines) {
    const { file, task } = JSON.parse(line) as { file: string; task: unknown };
    await mkdir(dirname(join(dir, file)), { recursive: true });
    await writeFile(join(dir, file), JSON.stringify(task));
  }
  return dir;
}
