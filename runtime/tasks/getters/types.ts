import type { TaskContext } from '../context.js';
import type { Value } from '../values.js';

/** A getter's configuration as the task file has it. */
export type GetterConfig = Readonly<Record<string, unknown>>;
/**
 * Null means "not there": a metric judges that 0. Throws MissingFile for a file it was sure to have; any other error is
 * a fault of the verifier.
 */
export type Getter = (ctx: TaskContext, config: GetterConfig) => Promise<Value>;
