export { ignoreFailure, orUndefined, settled } from '../domain/failures.js';
