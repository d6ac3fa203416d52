/**
 * Deletes expired data of sign-ins: sessions past their end or idle (with their challenges), links,
 * challenges, known browsers, and attempts that no longer count. None of them can be used again;
 * deleting them limits personal data to what is needed. Hourly is enough.
 */
export const purgeExpiredSignInsSql = /* sql */ `select purge_expired_sign_ins()`;
