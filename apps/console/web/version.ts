import { hash } from 'node:crypto';

/** Returns a short hash of what a part of a page shows. */
export const versionOf = (shown: unknown): string => hash('sha256', JSON.stringify(shown), 'base64url').slice(0, 16);
