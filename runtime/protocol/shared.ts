/** Pure functions that the runtime and the pages must agree on; pages know the wire and nothing else of the runtime. */
export { actionEntry, argumentValue, argumentsOf, makeAction, type NamedArgument } from '../domain/action.js';
export type { NumberArgument, TextArgument } from '../domain/actionArguments.js';
export { actionCall } from '../domain/actionCall.js';
export { isObject } from '../foreign/json.js';
export { applicationNames, type TaskGroup } from './applicationNames.js';
export { isPartial, scoreText } from './scores.js';
export { byApplication, nameOfTask, sumOf, type ApplicationTasks } from './taskGroups.js';
export { listColumns, rangeColumns, savedTableFiltersOf, tableFilterOf, tableFlags } from './table.js';
export { probePrefix } from '../domain/probeNames.js';
export { isProviderChoice } from '../domain/provider.js';
export { shellQuoted } from '../foreign/shellQuoted.js';
export { wilson } from '../domain/wilson.js';
