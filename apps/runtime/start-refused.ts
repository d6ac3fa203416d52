/**
 * An expected startup failure. The message tells the operator what to fix; no stack trace is
 * printed.
 */
export class StartRefused extends Error {}
