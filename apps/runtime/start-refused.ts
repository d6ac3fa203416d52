/** An expected startup failure. The message says what to fix; no stack trace is printed. */
export class StartRefused extends Error {}
