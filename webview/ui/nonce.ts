/**
 * Lets FAST (the toolkit's base) probe for :focus-visible with a style element of its own: it takes the nonce from a
 * meta element. Without it the content policy reports a breach and every click on a button draws a focus ring. Imported
 * before the toolkit; its maker takes it away.
 */
const nonce = document.querySelector<HTMLScriptElement>('script[nonce]')?.nonce ?? '';
export const nonceElement = document.createElement('meta');
nonceElement.setAttribute('property', 'csp-nonce');
nonceElement.content = nonce;
if (nonce) document.head.append(nonceElement);
