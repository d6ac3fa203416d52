/**
 * The durations of an attempt, and how they depend on each other. Each is longer than what has to
 * happen within it, so a delivery never has two posts at once.
 */

/** How long a receiver has for one attempt. */
export const postDeadlineMs = 10_000;
