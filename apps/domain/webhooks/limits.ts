/** The numbers of webhooks, each named once with its unit. Source: design, section 6. */

/** Webhooks of one organization that are not deleted. */
export const webhooksPerOrganization = 20;
/** Characters of what people call a webhook. The design is silent: a sentence or two. */
export const descriptionMaxCharacters = 500;
/**
 * How long a rotated secret may go on signing beside its successor, and how long it does when
 * nothing is said.
 */
export const secretOverlapMaxDays = 7;
export const secretOverlapDefaultSeconds = 86_400;
/**
 * Secrets that sign at a time. The design is silent: each adds a signature to every post, and
 * nobody deploys more than a few.
 */
export const signingSecretsAtMost = 5;
/** How long after it happened an event can be sent again. */
export const redeliverableDays = 30;
/** A webhook is suspended only when an attempt failed within this time. */
export const suspendTriedWithinSeconds = 3_600;
/** Deliveries of one webhook that one statement restarts or cancels; the next second goes on. */
export const deliveriesPerMove = 2_000;
/**
 * A settled delivery is kept for so many days at least: as long as its event can be sent again, and
 * one more.
 */
export const deliveryRetentionDaysAtLeast = redeliverableDays + 1;
/**
 * Settled deliveries, and events, that one statement deletes, so that none is long; the next second
 * goes on.
 */
export const purgeBatchSize = 5_000;
/**
 * Test events, probes and checks of signatures that people have sent to one webhook within a
 * minute. The design is silent: more than anybody looks at, and far too few to trouble a receiver.
 */
export const testsPerMinute = 10;
