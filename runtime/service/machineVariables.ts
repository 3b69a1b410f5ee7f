/** Variables of the environment that say what desktops may use of this machine. A run file cannot. */
export { CONTEXT_VARIABLE, PLUGINS_VARIABLE } from '../cluster/providers/kubernetes/access.js';
export { DISK_VARIABLE } from '../cluster/providers/osworld/access.js';
