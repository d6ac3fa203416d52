/**
 * The limits of signing in, each named once with its unit. Source: OWASP ASVS 5.0 (V6, V7), level
 * 2, unless a comment says otherwise.
 */

/** A session ends after this time, even in use (ASVS 7.3.2). */
export const sessionAbsoluteHours = 12;
/** A session ends after this long without a request (ASVS 7.3.1). */
export const sessionIdleMinutes = 30;
/** A session that waits for the second factor ends after this time. */
export const passwordStepMinutes = 10;
/** The use of a session is written at most this often, so that not every request writes. */
export const sessionSeenEverySeconds = 60;
/** How many sessions a person has at most; then the oldest ends. */
export const sessionsPerPerson = 10;
/** How long a second factor counts as fresh. */
export const stepUpMinutes = 5;

/** How long a link is valid with which a person enrols or joins one more organization. */
export const enrolmentHours = 72;
/** How long an operator's link is valid that replaces password and factors (ASVS 6.4.3). */
export const recoveryHours = 1;
/** How long a passkey's challenge, or an authenticator app's setup, is valid. */
export const challengeMinutes = 10;

/** Characters of a passkey's response; with the longest id and an RSA key it has about 8,000. */
export const passkeyResponseMaxLength = 16_000;

/** Characters of a password, counted in code points (ASVS 6.2.1, 6.2.9). */
export const passwordMinLength = 12;
export const passwordMaxLength = 128;

/** How many recovery codes a person gets at a time. */
export const recoveryCodes = 10;
export const factorsPerPerson = 10;

/** How long failures of one person (or of an unknown address) count. */
export const personWindowHours = 24;
/**
 * How long failures from one network count, for all persons together: an office shares an address.
 */
export const networkWindowMinutes = 15;
/** Failures of one person from one network, after which one attempt is admitted in 15 minutes. */
export const failuresPerPersonAndNetwork = 10;
/** The same from all networks. Higher, so that it takes many networks to make the person wait. */
export const failuresPerPerson = 100;
/**
 * Failures from one network in its window, after which the same applies. As many sign-ins that were begun at providers
 * and not completed are a separate count.
 */
export const failuresPerNetwork = 50;
/**
 * How long an attempt above a limit waits for the one before it. Attempts from all unknown browsers
 * of a person share it. An attacker who keeps failing on purpose locks those out for longer, but
 * not a known browser, which has a separate count.
 */
export const failureWaitMinutes = 15;
/** The most rejections that a process remembers, about 200 B each; then it forgets them all. */
export const rejectionsInMemory = 2_000;
/** How long a browser is known after its person's last sign-in. Source: OWASP, device cookies. */
export const knownBrowserDays = 30;
/** How many known browsers a person has at most; then the oldest is deleted. */
export const browsersPerPerson = 10;

/** How long a sign-in that was begun at a provider may take. */
export const providerStepMinutes = 10;

/** Sign-ins and new passwords of strangers at once in one process: each takes a connection, then a core. */
export const strangersAtOnce = 2;
/** How many of them may wait: about a second and a half of hashing. */
export const strangersWaiting = 50;
/** How many password hashes may wait, of sign-ins, changes and enrolments together. */
export const hashesWaiting = 50;
/** How long a person is asked to wait when too many wait already. */
export const busyRetrySeconds = 5;
