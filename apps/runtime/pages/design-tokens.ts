import { readFileSync } from 'node:fs';

/** The style sheet of colors, spaces and type that all pages begin with, as bytes. */
export const designTokens = readFileSync(new URL('tokens.css', import.meta.url));
