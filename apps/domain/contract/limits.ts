/** The numbers of the contract, each named once with its unit. */

/** Requests that one key may make in any trailing window. */
export const requestsPerWindow = 120;
/** The length of that window. */
export const requestWindowSeconds = 60;
/** Keys of one organization that may be valid at a time. */
export const validKeysPerOrganization = 25;
/** Keys that one organization may create in any hour, those of rotations too: each has calls of its own. */
export const keysCreatedPerHour = 60;
/** IP addresses and blocks of them from which a key may be used, when the organization restricts it. */
export const allowedAddressesPerKey = 20;
/** The most characters of a key's name and of its description. */
export const keyLabelMaxCharacters = 100;
export const keyDescriptionMaxCharacters = 500;
/** How long a rotated key may stay valid beside its successor. */
export const keyRotationOverlapMaxDays = 7;
/** Whole UTC days before today that outcomes cover. */
export const outcomesWindowDays = 90;
/** Client families below which outcomes, and each of their metrics, are withheld. */
export const outcomesMinimumFamilies = 5;
/** Authentications a minute from one address that fail without I/O; further ones get 429. */
export const failedAuthenticationsPerMinute = 600;
