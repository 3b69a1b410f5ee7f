import type { TaskContext } from '../context.js';
import type { Value } from '../values.js';

/** A getter's configuration as the task file has it. */
export type GetterConfig = Readonly<Record<string, unknown>>;
/**
 * Null means "missing", which a metric judges 0. Throws MissingFile where OSWorld raises FileNotFoundError; any other
 * error is a fault of the verifier.
 */
export type Getter = (ctx: TaskContext, config: GetterConfig) => Promise<Value>;
