/**
 * An expected startup failure. The message says what the operator must fix; no stack trace is
 * printed.
 */
export class StartRefused extends Error {}
