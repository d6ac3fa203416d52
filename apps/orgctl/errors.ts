/** The call was correct and is rejected: exit code 1. The message is the sentence for the caller. */
export class CommandError extends Error {}

/** The caller stopped waiting for work that continues without this command: exit code 130. */
export class InterruptedError extends Error {}
