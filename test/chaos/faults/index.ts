import type { Faults } from '../patient.js';
import { damageFaults } from './damage.js';
import { desktopFaults } from './desktops.js';
import { machineFaults } from './machine.js';
import { peopleFaults } from './people.js';
import { lessonFaults, placeFaults } from './places.js';
import { processFaults } from './processes.js';

/** Every kind of fault. */
export const faults: Faults = {
  ...lessonFaults,
  ...processFaults,
  ...placeFaults,
  ...desktopFaults,
  ...machineFaults,
  ...peopleFaults,
  ...damageFaults,
};
