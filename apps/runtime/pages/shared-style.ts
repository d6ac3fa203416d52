import { readFileSync } from 'node:fs';

/** The style that all pages begin with, as bytes: colors, spaces and type, and the rules of elements. */
export const sharedStyle = Buffer.concat(
  ['tokens.css', 'base.css'].map((name) => readFileSync(new URL(name, import.meta.url))),
);
