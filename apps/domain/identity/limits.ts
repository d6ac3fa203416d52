/**
 * The numbers of signing in, each named once with its unit. Source: OWASP ASVS 5.0 (V6, V7), level
 * 2, unless a comment says otherwise.
 */

/** A session ends then, however much it is used (ASVS 7.3.2). */
export const sessionAbsoluteHours = 12;
/** A session ends after this long without a request (ASVS 7.3.1). */
export const sessionIdleMinutes = 30;
/** A session that has only passed the password ends then: the second factor takes no longer. */
export const passwordStepMinutes = 10;
/**
 * The use of a session is written at most this often, so that a page's requests are not a write
 * each.
 */
export const sessionSeenEverySeconds = 60;
/** A second factor counts as fresh this long. */
export const stepUpMinutes = 5;

/** How long a link works with which a person enrols or joins one more organization. */
export const enrolmentHours = 72;
/**
 * How long an operator's link works that replaces a person's password and second factors (ASVS
 * 6.4.3).
 */
export const recoveryHours = 1;
/**
 * How long a passkey's challenge, or an authenticator app's secret that is being set up, waits for
 * its answer.
 */
export const challengeMinutes = 10;
/**
 * Questions to a session's passkeys, for one purpose, that wait at once: one in each of so many
 * tabs.
 */
export const challengesPerSession = 5;

/** Characters of a password, counted in code points (ASVS 6.2.1, 6.2.9). */
export const passwordMinLength = 12;
export const passwordMaxLength = 128;

/** Recovery codes a person gets at a time. */
export const recoveryCodes = 10;
/** Factors a person may have. */
export const factorsPerPerson = 10;

/** Failures of one person (or of an unknown address) count this long. */
export const personWindowHours = 24;
/**
 * Failures from one network count this long, for all persons together: an office shares an address.
 */
export const networkWindowMinutes = 15;
/**
 * Failures of one person from one network in the window, above which each waits for the one before
 * it.
 */
export const failuresPerPersonAndNetwork = 10;
/** The same from everywhere. Higher, so that it takes many networks to make the person wait. */
export const failuresPerPerson = 100;
/** Failures from one network in its window, above which the same holds. */
export const failuresPerNetwork = 50;
/** The first such wait; each further failure doubles it. */
export const firstWaitSeconds = 30;
/**
 * The longest wait between two attempts. Above the limits, attempts from all browsers that a person
 * has not signed in with share these waits, so an attacker who keeps failing on purpose locks those
 * out for longer, but not a known browser, which counts by itself.
 */
export const longestWaitSeconds = 900;
/**
 * A browser that its person has signed in with is known this long, counted from the last time.
 * Source: OWASP, device cookies.
 */
export const knownBrowserDays = 30;
/** Known browsers a person has at most; the oldest is deleted. */
export const browsersPerPerson = 10;

/**
 * Sign-ins of strangers that one process carries out at a time: each takes a connection of the
 * pool, then a core.
 */
export const strangersSignInsAtOnce = 2;
/** The same of known browsers, which strangers cannot use up. */
export const knownSignInsAtOnce = 4;
/**
 * Sign-ins of either kind that wait for their turn at most: about a second and a half of hashing.
 */
export const signInsWaiting = 50;
/**
 * Changes of password, and passwords of enrolments, that wait for their turn at most, each kind by
 * itself.
 */
export const passwordChangesWaiting = 10;
/** How long a person is asked to wait when too many wait already. */
export const busyRetrySeconds = 5;
