import type { Template } from '../kit.js';
import { calculatorTemplates } from './calculator.js';
import { copyTemplates } from './copies.js';
import { counterpartTemplates } from './counterparts.js';
import { dialogTemplates } from './dialogs.js';
import { fileTemplates } from './files.js';
import { formTemplates } from './forms.js';
import { freshTemplates } from './fresh.js';
import { kinTemplates } from './kin.js';
import { mixedTemplates } from './mixed.js';
import { noteTemplates } from './notes.js';
import { sheetTemplates } from './sheet.js';
import { terminalTemplates } from './terminal.js';
import { windowTemplates } from './windows.js';
import { wizardTemplates } from './wizards.js';

export const templates: readonly Template[] = [
  ...dialogTemplates,
  ...formTemplates,
  ...wizardTemplates,
  ...copyTemplates,
  ...noteTemplates,
  ...calculatorTemplates,
  ...fileTemplates,
  ...sheetTemplates,
  ...terminalTemplates,
  ...windowTemplates,
  ...mixedTemplates,
  ...kinTemplates,
  ...counterpartTemplates,
  ...freshTemplates,
];
