import { imageContents } from '../../../runtime/cluster/images.js';

/** What task files find in the image `desk`. */
export const desk = await imageContents('desk');
