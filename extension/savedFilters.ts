/** Filters of the table of trajectories that were saved by name, kept with the workspace. */
import type { Memento } from 'vscode';
import { savedTableFiltersOf } from '../runtime/protocol/shared.js';
import type { SavedTableFilter } from '../runtime/protocol/types.js';
import { stored } from './ids.js';

export const savedFilters = (state: Memento): SavedTableFilter[] => savedTableFiltersOf(state.get(stored.tableFilters));
