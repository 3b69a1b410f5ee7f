import './index.js';

/** JSON schema of run files, with every kind of policy that is registered. */
export { jsonSchema } from '../../config/index.js';
