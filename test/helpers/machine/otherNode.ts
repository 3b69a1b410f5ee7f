import { pathToFileURL } from 'node:url';

/** A Node of another generation than the one that runs the tests: the current workbench's, from npm's registry. */
export async function node24(): Promise<string> {
  const { ensureNode } = (await import(pathToFileURL('scripts/lib/rig.mjs').href)) as {
    ensureNode(): Promise<string>;
  };
  return ensureNode();
}
