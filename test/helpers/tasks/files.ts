import type { Task } from '../../../runtime/tasks/index.js';
import { parseTask, uuid5 } from '../../../runtime/tasks/index.js';
import { readJson } from '../../../runtime/tasks/taskFile.js';

/** One task file, as a folder of them is read. */
export const loadTaskFile = async (file: string): Promise<Task> => parseTask(await readJson(file), file);

/** OSWorld's cache name of a download. */
export const cacheName = (url: string, path: string): string => `${uuid5(url)}_${path.split('/').pop() ?? ''}`;
