export { attributes, type Child, type Html, html, nothing, trusted } from '#runtime/pages/html.ts';
