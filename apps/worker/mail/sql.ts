/** Admits the next mail that is due for an attempt; no row: none is. */
export const admitMailSql = /* sql */ `
  select a.id, a.kind, a.organization_id as "organizationId", a.person_id as "personId", a.address, a.sealed, a.facts,
    a.attempts, a.created_at as "createdAt" from admit_mail() a`;

/**
 * Records the end of attempt `$2` of mail `$1`: `$3` is `sent` or `rejected`, or null to wait `$5`
 * seconds. `$4` is the reply.
 */
export const settleMailSql = /* sql */ `select settle_mail($1, $2, $3, $4, $5)`;

/** Drops what waits while no mail server is configured. */
export const dropMailsSql = /* sql */ `select drop_mails() as mails`;
