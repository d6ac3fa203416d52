/**
 * Why an app could not start, in one sentence with the remedy, for whoever starts it: it is told
 * without a stack.
 */
export class StartRefused extends Error {}
