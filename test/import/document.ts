import { Readable } from 'node:stream';
import pg from 'pg';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { type ImportOptions, importFile } from '../../apps/import/document/import-file.ts';
import { InvalidDocumentError, type Problem } from '../../apps/import/document/problems.ts';
import type { ImportResult } from '../../apps/import/document/result.ts';

/** A document in which a test can make any part invalid. */
// biome-ignore lint/suspicious/noExplicitAny: a document is what a stranger's file may hold
export type Loose = any;

const hex = (n: number) => n.toString(16).padStart(12, '0');
/**
 * Returns a UUID that is readable in a test: the kind in the first digits, the number in the last.
 */
export const uuid = (kind: string, n: number) => `${kind.padEnd(8, '0')}-0000-4000-8000-${hex(n)}`;

export const ids = {
  organization: uuid('a', 1),
  otherOrganization: uuid('a', 2),
  role: uuid('b', 1),
  families: [uuid('c', 1), uuid('c', 2), uuid('c', 3)],
  grants: [uuid('d', 1), uuid('d', 2), uuid('d', 3)],
  seats: [uuid('e', 1), uuid('e', 2)],
  subscription: uuid('f', 1),
  code: uuid('1', 1),
  referral: uuid('2', 1),
  invoice: uuid('3', 1),
} as const;

/**
 * A small document with a row of every kind: grant 0 is active and holds the only assigned seat of
 * two, 1 has moved, 2 has an end in the future.
 */
export function smallDocument(): Loose {
  return {
    region: 'us',
    asOf: '2026-11-20',
    organizations: [
      {
        id: ids.organization,
        name: 'Žižka & Ünal',
        slug: 'zizka-unal',
        kind: 'law_firm',
        status: 'active',
        createdAt: '2025-01-02T03:04:05.678Z',
        roles: [
          {
            id: ids.role,
            key: 'intake',
            name: 'Intake',
            description: '',
            permissions: ['org.read', 'org.clients.read'],
          },
        ],
        members: [
          {
            userId: 'u1',
            name: 'Åsa',
            email: 'asa@example.org',
            title: 'Attorney',
            status: 'active',
            roleKeys: ['owner'],
          },
          {
            userId: 'u2',
            name: 'Bo',
            email: 'bo@example.org',
            title: null,
            status: 'active',
            roleKeys: ['member', 'intake'],
          },
        ],
        families: ids.families.map((id, n) => ({ id, name: `Family ${n}` })),
        grants: [
          grant(0, { since: '2026-03-01T00:00:00.000Z' }),
          grant(1, { since: '2026-03-01T00:00:00.000Z', endsAt: '2026-06-01T00:00:00.000Z', endReason: 'moved' }),
          grant(2, { since: '2026-03-01T00:00:00.000Z', endsAt: '2999-06-01T00:00:00.000Z' }),
        ],
        seatPlan: {
          invoiced: 1,
          pricePerSeat: { currency: 'usd', cents: 1900 },
          subscriptions: [
            {
              id: ids.subscription,
              status: 'active',
              quantity: 1,
              renewsAt: '2027-01-01T00:00:00.000Z',
              cancelAtPeriodEnd: false,
            },
          ],
        },
        seats: [
          {
            id: ids.seats[0],
            grantId: ids.grants[0],
            givenAt: '2026-04-01T00:00:00.000Z',
            endedAt: null,
            reason: null,
          },
          {
            id: ids.seats[1],
            grantId: ids.grants[1],
            givenAt: '2026-04-01T00:00:00.000Z',
            endedAt: '2026-06-01T00:00:00.000Z',
            reason: 'access_ended',
          },
        ],
        referralCodes: [
          {
            id: ids.code,
            code: 'SPRING',
            link: 'https://example.org/r/1',
            label: null,
            active: true,
            referrals: [{ id: ids.referral, state: 'qualified' }],
          },
        ],
        referralInvoices: [{ id: ids.invoice, month: '2026-09', currency: 'usd', shareCents: 1234 }],
        familyDays: [familyDay(0, '2026-11-18'), familyDay(0, '2026-11-19')],
      },
    ],
  };
}

export function grant(n: number, other: object = {}): Loose {
  return {
    id: ids.grants[n],
    kind: 'attorney',
    professionalUserId: 'u2',
    familyId: ids.families[n],
    since: '2026-03-01T00:00:00.000Z',
    endsAt: null,
    endReason: null,
    ...other,
  };
}

export function familyDay(n: number, day: string): Loose {
  const counts = {
    messages: 4,
    calmMessages: 3,
    exchanges: 2,
    exchangesOnTime: 1,
    expensesDue: 1,
    expensesAnsweredIn14Days: 0,
  };
  return { familyId: ids.families[n], day, ...counts };
}

/** An organization without rows, beside the one of the small document. */
export function otherOrganization(): Loose {
  const { id, ...head } = smallDocument().organizations[0];
  const { name, kind, status, createdAt } = head;
  return { id: ids.otherOrganization, name, slug: 'other', kind, status, createdAt };
}

export function importDocument(
  databaseUrl: string,
  document: unknown,
  options: Partial<ImportOptions> = {},
): Promise<ImportResult> {
  return importText(databaseUrl, JSON.stringify(document), options);
}

export function importText(
  databaseUrl: string,
  text: string | Uint8Array,
  options: Partial<ImportOptions> = {},
): Promise<ImportResult> {
  return importFile({
    server: parsePostgresUrl(databaseUrl),
    source: Readable.from([text]),
    fileName: 'test.json',
    region: 'us',
    ...options,
  });
}

/** Returns the problems of a document that must be rejected. */
export async function rejection(importing: Promise<unknown>): Promise<{ problems: readonly Problem[]; total: number }> {
  const error = await importing.then(
    () => new Error('was imported'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof InvalidDocumentError)) throw error;
  return error;
}

export const tables = [
  'organization',
  'person',
  'membership',
  'role',
  'membership_role',
  'family',
  'client_grant',
  'seat',
  'seat_plan',
  'subscription',
  'referral_code',
  'referral',
  'referral_invoice',
  'family_day',
  'audit_entry',
];

/** Returns a text per table that changes with any row, and with any new version of a row. */
export async function rowVersions(databaseUrl: string): Promise<Record<string, string>> {
  const versions: Record<string, string> = {};
  for (const table of tables) {
    const [row] = await query(
      databaseUrl,
      `select count(*) || ':' || coalesce(md5(string_agg(r, ';' order by r)), '') as text
       from (select concat(t.tableoid, t.ctid, t.xmin, t) as r from ${table} t) as rows`,
    );
    versions[table] = row?.text;
  }
  return versions;
}

export async function query(databaseUrl: string, sql: string, values: unknown[] = []): Promise<Loose[]> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query(sql, values)).rows;
  } finally {
    await client.end();
  }
}
