/** Checks in SQL, part one: identities. Each statement returns rows of (path, problem). */

/** Returns SQL for the path of a row in a list of an organization, or of one of its fields. */
export function itemPath(alias: string, list: string, field = ''): string {
  const below = field === '' ? '' : `.${field}`;
  return `format('$.organizations[%s].${list}[%s]${below}', ${alias}.organization, ${alias}.position)`;
}

const organizationPath = (field: string) => `format('$.organizations[%s].${field}', r.position)`;
const referralPath =
  "format('$.organizations[%s].referralCodes[%s].referrals[%s].id', r.organization, r.code_position, r.position)";

/** Keys that may occur only once. Ids of `stored` tables are unique across organizations. */
const identities: { from: string; by: string; order: string; path: string; stored?: string }[] = [
  { from: 'staged_organization', by: 'id', order: 'position', path: organizationPath('id') },
  ...[
    { from: 'staged_role', list: 'roles', stored: 'role' },
    { from: 'staged_grant', list: 'grants', stored: 'client_grant' },
    { from: 'staged_seat', list: 'seats', stored: 'seat' },
    { from: 'staged_subscription', list: 'seatPlan.subscriptions', stored: 'subscription' },
    { from: 'staged_referral_code', list: 'referralCodes', stored: 'referral_code' },
    { from: 'staged_referral_invoice', list: 'referralInvoices', stored: 'referral_invoice' },
  ].map(({ from, list, stored }) => ({
    from,
    by: 'id',
    order: 'organization, position',
    path: itemPath('r', list, 'id'),
    stored,
  })),
  {
    from: 'staged_referral',
    by: 'id',
    order: 'organization, code_position, position',
    path: referralPath,
    stored: 'referral',
  },
  // A family may be a client of two organizations, and a person a member of both.
  { from: 'staged_family', by: 'organization, id', order: 'position', path: itemPath('r', 'families', 'id') },
  { from: 'staged_member', by: 'organization, user_id', order: 'position', path: itemPath('r', 'members', 'userId') },
  {
    from: 'staged_family_day',
    by: 'organization, family_id, day',
    order: 'position',
    path: itemPath('r', 'familyDays', 'day'),
  },
];

const given = (by: string) =>
  by
    .split(', ')
    .map((column) => `${column} is not null`)
    .join(' and ');

const repeated = identities.map(({ from, by, order, path }) => {
  const problem =
    from === 'staged_family_day' ? 'the family already has this day in the file' : 'is already in the file';
  return `
    select ${path} as path, '${problem}' as problem
    from (select *, row_number() over (partition by ${by} order by ${order}) as nth from ${from}
      where ${given(by)}) as r
    where r.nth > 1`;
});

const elsewhere = identities.flatMap(({ from, path, stored }) =>
  stored === undefined
    ? []
    : [
        `
    select ${path}, 'belongs to another organization in the database'
    from ${from} r join ${stored} t on t.id = r.id
    where r.organization_id is not null and t.organization_id is distinct from r.organization_id`,
      ],
);

/** Names that must be unique, in the file and among other rows of the database. */
const inUse = [
  `select ${organizationPath('slug')}, 'is the slug of another organization in the file'
   from (select position, slug, row_number() over (partition by slug order by position) as nth
     from staged_organization where slug is not null) as r
   where r.nth > 1`,
  `select ${organizationPath('slug')}, 'is the slug of another organization in the database'
   from staged_organization r join organization o on o.slug = r.slug
   where o.id is distinct from r.id and not exists (select from staged_organization m where m.id = o.id)`,
  ...[
    { from: 'staged_role', list: 'roles', table: 'role', column: 'key', what: 'role' },
    {
      from: 'staged_referral_code',
      list: 'referralCodes',
      table: 'referral_code',
      column: 'code',
      what: 'referral code',
    },
  ].flatMap(({ from, list, table, column, what }) => [
    `select ${itemPath('r', list, column)}, 'another ${what} of the organization has it in the file'
     from (select organization, position, row_number() over (partition by organization, ${column}
       order by position) as nth
           from ${from} where ${column} is not null) as r
     where r.nth > 1`,
    `select ${itemPath('r', list, column)}, 'another ${what} of the organization has it in the database'
     from ${from} r join ${table} t on t.organization_id = r.organization_id and t.${column} = r.${column}
     where t.id is distinct from r.id and not exists (select from ${from} m
       where m.organization_id = t.organization_id and m.id = t.id)`,
  ]),
  `select ${itemPath('r', 'roles', 'key')}, 'is the key of a role that every organization has'
   from staged_role r join role t on t.organization_id is null and t.key = r.key`,
];

/** Unknown role keys: of no role in the file, none that it leaves unchanged, no system role. */
const unknownRoles = `
  select format('$.organizations[%s].members[%s].roleKeys[%s]', r.organization, r.position, k.nth - 1),
    'is the key of no role of the organization'
  from staged_member r cross join unnest(r.role_keys) with ordinality as k (key, nth)
  where not exists (select from staged_role f where f.organization = r.organization and f.key = k.key)
    and not exists (
      select from role t where t.key = k.key and (t.organization_id is null or (t.organization_id = r.organization_id
        and not exists (select from staged_role f where f.organization_id = t.organization_id and f.id = t.id))))`;

export const identityChecks: readonly string[] = [...repeated, ...elsewhere, ...inUse, unknownRoles];
