/** The limits of webhooks, each named once with its unit. */

/** The most deliveries of one webhook that are attempted at once. */
export const maxConcurrency = 10;
/** The most deliveries of one organization's healthy webhooks that are attempted at once. */
export const organizationConcurrency = 50;
/** A webhook of which fewer deliveries may be attempted at once is degraded. */
export const healthyConcurrency = 5;
/** The highest bound of posts a second that an owner can set for a webhook. */
export const postsPerSecondAtMost = 100;
/** Webhooks of one organization that are not deleted. */
export const webhooksPerOrganization = 20;
export const descriptionMaxCharacters = 500;
/** Custom headers of a webhook, and how long a name, a value, and all names and values together may be. */
export const headersPerWebhook = 10;
export const headerNameMaxCharacters = 100;
export const headerValueMaxCharacters = 1_000;
/** With the service's own headers, those of a post take 8 KiB at most. */
export const headersMaxCharacters = 6_000;
/** How long a rotated secret can sign beside its successor: the most days, the default seconds. */
export const secretOverlapMaxDays = 7;
export const secretOverlapDefaultSeconds = 86_400;
/** The most secrets that sign at a time: each adds a signature to every post. */
export const signingSecretsAtMost = 5;
/** The most bytes of an event's body, which receivers have to accept. Today's have some hundred. */
export const eventBytesAtMost = 64 * 1024;
/** How long after its time an event can be sent again. */
export const redeliverableDays = 30;
/**
 * Deliveries that one statement moves, cancels or repairs. Part of its text: for a parameter, a plan for any
 * values expects a tenth of the rows, and may read the whole table for a few.
 */
export const deliveriesPerStatement = 2_000;
/** The least days that a settled delivery is kept: one more than its event can be sent again. */
export const deliveryRetentionDaysAtLeast = redeliverableDays + 1;
/**
 * Settled deliveries and events that one statement deletes; the next one follows a second later.
 */
export const purgeBatchSize = 5_000;
/** The most test events, probes and signature checks that members of an organization send within a minute. */
export const testsPerMinute = 20;
