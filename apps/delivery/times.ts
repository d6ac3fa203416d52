import { attemptTimeoutMs } from '#workflows/deliver-event/types.ts';

/**
 * The durations of a delivery, and how they depend on each other. Each is longer than what has to
 * happen within it, so that two posts of a delivery never overlap while PostgreSQL keeps its commits.
 */

/** The receiver's time: from the connection to its status line. */
export const postDeadlineMs = 10_000;
/** The end of an attempt's time, left for its report to Temporal. */
export const reportMs = 2_000;
/**
 * How late the last try to record the outcome begins, from the start of the attempt. It may take
 * what a database allows: 5 s for a connection, and 6 s for the statement.
 */
export const recordUntilMs = attemptTimeoutMs - reportMs;
/** How late the connection to the receiver may begin: after the admission and the look-up of its name. */
export const postUntilMs = recordUntilMs - postDeadlineMs;
/**
 * How long an admitted attempt has its slot, by PostgreSQL's clock. Afterwards it counts as lost,
 * and another attempt may be admitted.
 */
export const slotMs = 25_000;
/** How long a claim's slot is reserved. The request that starts its run is sent within this time. */
export const reservedMs = 10_000;
/** How long one try of a request to Temporal may take. The SDK repeats some errors for up to 10 s. */
export const startDeadlineMs = 5_000;
/** How often an attempt asks again while another connection assigns slots of its organization or has its delivery. */
export const askAgainMs = 10;
/** How often each worker repairs deliveries. */
export const repairEveryMs = 1_000;
/** How often each worker looks for redeliveries whose next page is due. */
export const redeliverEveryMs = 500;
