import { manifests, NAMESPACE, yamlOf } from '../cluster/providers/kubernetes/manifests.js';
import { buildRuntimeImage as build, type RuntimeImageOptions } from '../cluster/providers/kubernetes/runtimeImage.js';
import type { RunConfig, RunFile } from '../config/index.js';
import { thisBundle } from './engines.js';

/**
 * The objects that a cluster needs for the desktops of a run, as YAML for `kubectl apply -f -`; with `jobImage` also
 * what trains in the cluster. `runFile` is what the Job reads.
 */
export function clusterManifests(o: {
  readonly config: RunConfig;
  readonly runFile: RunFile;
  readonly jobImage?: string | undefined;
}): string {
  const job =
    o.jobImage === undefined ? {} : { job: { image: o.jobImage, runFile: JSON.stringify(o.runFile, null, 2) } };
  const { namespace } = o.config.desktops.kubernetes,
    hint = namespace === undefined ? `# Run files name it: desktops.kubernetes.namespace: ${NAMESPACE}\n` : '';
  return hint + yamlOf(manifests({ desktops: o.config.desktops, ...job }));
}

/** Builds the image of the runtime, for the Job of `clusterManifests`, from what is installed here. */
export const buildRuntimeImage = (o: Omit<RuntimeImageOptions, 'bundle'>): Promise<string> =>
  build({ ...o, bundle: thisBundle().file });
