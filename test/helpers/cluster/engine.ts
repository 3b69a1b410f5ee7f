import { connectEngine } from '../../../runtime/cluster/imageBuild.js';

/** The version of the engine that answers here, or undefined. */
export async function engineHere(): Promise<string | undefined> {
  try {
    return (
      await (connectEngine().version as (o: object) => Promise<{ Version: string }>).call(connectEngine(), {
        abortSignal: AbortSignal.timeout(4000),
      })
    ).Version;
  } catch {
    return undefined;
  }
}
