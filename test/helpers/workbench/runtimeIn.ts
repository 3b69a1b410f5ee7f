import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { record, when } from '../daemon/harness.js';

/** A runtime that serves this folder; resolves when windows can attach. */
export async function runtimeIn(storage: string, bundle: string): Promise<ChildProcess> {
  mkdirSync(storage, { recursive: true });
  const child = spawn(process.execPath, [bundle, 'serve', storage], { stdio: 'ignore' }),
    ended = new Promise<never>((_done, fail) => {
      child.once('exit', (code) => fail(new Error(`the runtime ended with code ${code}`)));
    });
  await Promise.race([when(storage, () => record(storage)), ended]);
  return child;
}
