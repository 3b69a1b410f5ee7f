import { jsonReply, type Reply } from '../http.js';

/** An error in the form of OSWorld's server. */
export const failure = (message: string, status = 500): Reply => jsonReply({ status: 'error', message }, status);
