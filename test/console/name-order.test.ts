/** Lists by name are in the order of people, not of code points, in any locale of the database. */
// cspell:ignore Øystein Łódź
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { listKeyChoices, listPeopleChoices } from '#domain/audit-log/choices.ts';
import { getSignIn } from '#domain/identity/orgctl-actions.ts';
import { listSignInMethods } from '#domain/identity/sso-sign-in.ts';
import type { Session } from '#domain/identity/types.ts';
import { listCreatorRoles } from '#domain/keys/list.ts';
import { listMembers } from '#domain/members/list-members.ts';
import { listRoles } from '#domain/members/list-roles.ts';
import { listOrganizationsSql } from '../../apps/orgctl/organizations.ts';
import { setupConsole } from './setup.ts';

const names = [
  'Zoe',
  'Øystein',
  'Íris',
  'iris',
  'Iris',
  'åse',
  'Ångström',
  'Bob',
  'Émile',
  'Łódź',
  'zoë',
  'Élan',
  'o’Neil',
];
const ordered = names.toSorted(new Intl.Collator('en').compare);
const among = (found: readonly string[]) => found.filter((name) => names.includes(name));

it('members, roles, organizations and choices are in the order of Intl.Collator, over all pages', async () => {
  const t = await setupConsole();
  const orgId = await t.make.organization({ name: 'Harbor' });
  const ada = await t.enrol({ orgId, roleKey: 'owner', name: 'Ada Rivers' });
  const holder = await t.make.member({ orgId, name: 'Someone' });
  for (const name of names) {
    await t.make.member({ orgId, name });
    const roleId = await t.make.role({ orgId, permissions: ['org.read'], name });
    await t.owner.pool.query('insert into membership_role (organization_id, person_id, role_id) values ($1, $2, $3)', [
      orgId,
      holder.userId,
      roleId,
    ]);
    await t.make.apiKey({ creator: { orgId, userId: ada.personId, roleId: null }, label: name });
    await t.make.member({ orgId: await t.make.organization({ name }), userId: ada.personId, roleKey: 'owner' });
  }
  const db = t.owner;
  const { pool } = t.owner;

  const pages: string[] = [];
  const filter = { status: 'all', text: '', roleId: null } as const;
  for (let after: string | null = null, hasMore = true; hasMore; ) {
    const { rows, next } = await listMembers(db, orgId, filter, after, 2, new Date());
    pages.push(...rows.map(({ name }) => name));
    after = next;
    hasMore = next !== null;
  }
  expect(among(pages)).toEqual(ordered);
  const holderRow = (await listMembers(db, orgId, { ...filter, text: 'Someone' }, null, 2, new Date())).rows[0];
  expect(among(holderRow?.roles.map(({ name }) => name) ?? [])).toEqual(ordered);
  expect(among((await listRoles(db, orgId)).map(({ name }) => name))).toEqual(ordered);
  expect(among((await listCreatorRoles(db, orgId, holder.userId)).map(({ name }) => name))).toEqual(ordered);
  expect(among((await listPeopleChoices(db, orgId, null)).map(({ name }) => name))).toEqual(ordered);
  expect(among((await listKeyChoices(db, orgId, null)).map(({ label }) => label))).toEqual(ordered);
  const { rows } = await pool.query<{ name: string }>(listOrganizationsSql);
  expect(among(rows.map(({ name }) => name))).toEqual(ordered);
  const shown = await getSignIn(db, ada.email);
  expect(among(shown.memberships.map(({ organizationName }) => organizationName))).toEqual(ordered);

  await pool.query(
    `insert into sso_provider (id, organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     select gen_random_uuid(), id, 'https://login.example.org', 'console', 'sealed', false, now() from organization`,
  );
  const { providers } = await listSignInMethods(db, { personId: ada.personId, providerId: null } as Session);
  expect(among(providers.map(({ organizationName }) => organizationName))).toEqual(ordered);

  const home = await t.http(ada).get('/');
  const links = [...home.text.matchAll(/<a href="\/o\/[^"]*"[^>]*>(?:<svg[\s\S]*?<\/svg>)?([^<]*)<\/a>/g)];
  // The navigation and the page have them.
  expect(among(links.map(([, name = '']) => name))).toEqual([...ordered, ...ordered]);
});

it('no statement or page orders by a name in another way', () => {
  const root = new URL('../../apps/', import.meta.url);
  const files = globSync('{domain,console,orgctl,delivery}/**/*.ts', { cwd: root });
  const byName = new Set<string>();
  const found = files.flatMap((file) => {
    const text = readFileSync(new URL(file, root), 'utf8');
    if (text.includes('und-x-icu') && file !== 'domain/db/fold.ts') byName.add(file); // which orders nothing
    const clauses = [...text.matchAll(/order by (?:[^;`]|\n)*?(?=\blimit\b|\boffset\b|[;`]|\n\s*\)|$)/g)].map(
      ([clause]) => clause,
    );
    const inSql = clauses.filter((clause) => /\b(name|label|title|description)\b/.test(clause));
    const inPages = /localeCompare|\.(toSorted|sort)\(\)/.test(text) && file.startsWith('console/') ? ['sort()'] : [];
    return [...inSql.filter((clause) => !clause.includes('und-x-icu')), ...inPages].map((each) => `${file}: ${each}`);
  });
  expect(found).toEqual([]);
  // All are in the test above: the home page has its organizations from the session.
  expect([...byName].sort()).toEqual([
    'domain/audit-log/choices.ts',
    'domain/identity/orgctl-actions.ts',
    'domain/identity/sessions.ts',
    'domain/identity/sso-sign-in.ts',
    'domain/keys/list.ts',
    'domain/members/list-members.ts',
    'domain/members/list-roles.ts',
    'orgctl/organizations.ts',
  ]);
  expect(files.length).toBeGreaterThan(300);
});
