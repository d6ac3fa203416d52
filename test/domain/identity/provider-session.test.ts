/**
 * What a session may change of its person's sign-in, by the table of docs/design/identity.md: a provider of one
 * organization never gains access to another one.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { acceptEnrolment } from '#domain/identity/accept-link.ts';
import { changePassword } from '#domain/identity/change-password.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import {
  addPasskey,
  addTotp,
  listFactors,
  removeFactor,
  renewRecoveryCodes,
  startPasskey,
  startTotp,
} from '#domain/identity/factors.ts';
import { redeemRecoveryCode, startPasskeyUse, verifyPasskey, verifyTotp } from '#domain/identity/second-factor.ts';
import { endOtherSessions, endSession, findSession, listSessions, needsStepUp } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { linkAccount, listSignInMethods, signInWithProvider, unlinkAccount } from '#domain/identity/sso-sign-in.ts';
import { createAuthenticator } from '#test/authenticator.ts';
import { codeAt, goodPassword, minuteMs, settings, setupPeople, visitor } from '#test/people.ts';
import { routes } from '../../../apps/console/routes.ts';

const columns = ['Session of a password', 'Of a provider, not confined', 'Of a provider, confined'] as const;
type Column = (typeof columns)[number];
const newPassword = 'copper-lantern-bridge-sparrow';
const party = settings.relyingParty;

/** A person with a session of one kind at organization A, and for two of the kinds with another organization B. */
async function setup(column: Column) {
  const t = await setupPeople();
  const person = await t.enrol();
  const { personId } = person;
  const here = { orgId: person.orgId, providerId: await t.addProvider(person.orgId) };
  await t.linkAccount(here.providerId, personId, 'account-1');
  const elsewhere = column === 'Of a provider, not confined' ? null : await t.enrol();
  const there = elsewhere && { orgId: elsewhere.orgId, providerId: await t.addProvider(elsewhere.orgId) };
  if (there !== null) {
    await t.make.member({ orgId: there.orgId, userId: personId });
    await t.linkAccount(there.providerId, personId, 'account-1');
  }
  if (column !== 'Session of a password') await t.beginAtProvider(person.token, here.providerId);
  const isOfPassword = column === 'Session of a password';
  const full = async (providerId: string | null) => {
    t.pass(minuteMs);
    const { token } =
      providerId === null
        ? await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now)
        : await signInWithProvider(t.db, { providerId, subject: 'account-1', visitor }, t.now);
    const code = { code: codeAt(person.secret, t.now()), visitor };
    return (await verifyTotp(t.db, await t.session(token), code, settings, t.now)).token;
  };
  const count = async (table: string, condition = 'true') =>
    (await t.owner.pool.query(`select from ${table} where person_id = $1 and ${condition}`, [personId])).rowCount ?? 0;
  /** Whether a query's result is another one after what is tried, which may be rejected. */
  const changes = async (query: string, tried: () => Promise<unknown>) => {
    const read = async () => JSON.stringify((await t.owner.pool.query(query, [personId])).rows);
    const before = await read();
    await tried().catch(expectRejection);
    return (await read()) !== before;
  };
  return { ...t, person, here, there, isOfPassword, full, count, changes, mine: await t.session(person.token) };
}

type Setup = Awaited<ReturnType<typeof setup>>;

/** A cell says no by one of these, and by no error of the console. */
function expectRejection(error: { reason?: string }): void {
  expect(error.reason).toBeOneOf([
    'password_session_needed',
    'account_not_linked',
    'sign_in_rejected',
    'no_such_session',
  ]);
}

const passwordHash = 'select password_hash from sign_in where person_id = $1';
const factors = 'select id from second_factor where person_id = $1 order by id';
const accounts = 'select provider_id, subject from sso_subject where person_id = $1 order by 1, 2';

const link = (t: Setup, at: Setup['there']) =>
  t.changes(accounts, () =>
    linkAccount(
      t.db,
      { providerId: at?.providerId ?? '', subject: 'account-2', sessionId: t.mine.id, session: t.mine, visitor },
      t.now,
    ),
  );
const unlink = (t: Setup, at: Setup['there']) =>
  t.changes(accounts, () => unlinkAccount(t.db, t.mine, { organizationId: at?.orgId ?? '', visitor }, t.now));

/** Whether a session may see and end another one, alone and with all others. The answers must be the same. */
async function ends(t: Setup, providerId: string | null): Promise<boolean> {
  const found = [];
  for (const all of [false, true]) {
    const token = await t.full(providerId);
    const { id } = await t.session(token);
    const mine = await t.session(t.person.token);
    const isSeen = (await listSessions(t.db, mine, t.now())).some((one) => one.id === id);
    await (all ? endOtherSessions(t.db, mine, visitor) : endSession(t.db, mine, id, visitor)).catch(expectRejection);
    const hasEnded = (await findSession(t.db, token, t.now())) === null;
    found.push(isSeen, hasEnded);
  }
  expect(new Set(found).size).toBe(1);
  return found[0] === true;
}

const stepsUp = async (t: Setup, verify: (stale: Setup['mine']) => Promise<{ token: string }>) => {
  t.pass(6 * minuteMs);
  const stale = await t.session(t.person.token);
  expect(needsStepUp(stale, t.now())).toBe(true);
  return !needsStepUp(await t.session((await verify(stale)).token), t.now());
};

/** Gives the person a passkey, from a session of their password. */
async function givePasskey(t: Setup) {
  const key = createAuthenticator();
  const session = await t.session(await t.full(null));
  const { challenge } = await startPasskey(t.db, session, party, t.now);
  await addPasskey(t.db, session, { response: key.register(challenge), name: 'Key', visitor }, party, t.now);
  return key;
}

/** What each row of the table tries, and the forms of the console that do it. */
const rows: Record<string, { tries: (t: Setup) => Promise<boolean>; forms?: string[] }> = {
  "Open the provider's organization": {
    tries: async ({ mine, here }) => mine.memberships.some(({ organizationId }) => organizationId === here.orgId),
  },
  'Open another organization': {
    tries: async ({ mine, there }) => mine.memberships.some(({ organizationId }) => organizationId === there?.orgId),
  },
  'Join another organization with its link': {
    forms: ['joinOrganization'],
    async tries(t) {
      const organizationId = await t.make.organization();
      const { token } = await createEnrolment(t.owner, { organizationId, email: t.person.email, by: 'orgctl' }, t.now);
      return t.changes('select organization_id from sign_in_confirmation where person_id = $1 order by 1', () =>
        acceptEnrolment(t.db, t.mine, { token, visitor }, t.now),
      );
    },
  },
  'Set a first password': {
    forms: ['changePassword'],
    async tries(t) {
      await t.owner.pool.query('update sign_in set password_hash = null where person_id = $1', [t.person.personId]);
      return t.changes(passwordHash, () =>
        changePassword(t.db, t.mine, { oldPassword: '', newPassword, visitor }, t.now),
      );
    },
  },
  'Change the password, with the current one': {
    forms: ['changePassword'],
    tries: (t) =>
      t.changes(passwordHash, () =>
        changePassword(t.db, t.mine, { oldPassword: goodPassword, newPassword, visitor }, t.now),
      ),
  },
  'Add a passkey': {
    forms: ['startPasskey', 'addPasskey'],
    tries: (t) =>
      t.changes(factors, async () => {
        const { challenge } = await startPasskey(t.db, t.mine, party, t.now);
        const response = createAuthenticator().register(challenge);
        return addPasskey(t.db, t.mine, { response, name: 'Key', visitor }, party, t.now);
      }),
  },
  'Add an authenticator app': {
    forms: ['startTotp', 'addTotp'],
    tries: (t) =>
      t.changes(factors, async () => {
        const { secret } = await startTotp(t.db, t.mine, settings, t.now);
        return addTotp(t.db, t.mine, { code: codeAt(secret, t.now()), name: 'App', visitor }, settings, t.now);
      }),
  },
  'Remove a second factor': {
    forms: ['removeFactor'],
    async tries(t) {
      await givePasskey(t);
      const [factor] = (await listFactors(t.db, t.mine)).factors;
      return t.changes(factors, () => removeFactor(t.db, t.mine, { factorId: factor?.id ?? '', visitor }, t.now));
    },
  },
  'Create recovery codes': {
    forms: ['renewRecoveryCodes'],
    tries: (t) =>
      t.changes('select code_hash from recovery_code where person_id = $1 order by 1', () =>
        renewRecoveryCodes(t.db, t.mine, visitor, t.now),
      ),
  },
  'Change the address': {
    // An operator does it: no form of the console has another address to sign in with.
    tries: async () => routes.some(({ path, schema }) => /^\/account/.test(path) && 'email' in schema.shape),
  },
  'Link an account at the provider': { forms: ['linkProviderAccount'], tries: (t) => link(t, t.here) },
  'Unlink the account at the provider': { forms: ['unlinkProviderAccount'], tries: (t) => unlink(t, t.here) },
  'Link an account at another provider': { forms: ['linkProviderAccount'], tries: (t) => link(t, t.there) },
  'Unlink the account at another provider': { forms: ['unlinkProviderAccount'], tries: (t) => unlink(t, t.there) },
  'See and end sessions that began at the provider': {
    forms: ['endSession', 'endOtherSessions'],
    tries: (t) => ends(t, t.here.providerId),
  },
  'See and end other sessions': {
    forms: ['endSession', 'endOtherSessions'],
    tries: (t) => ends(t, null),
  },
  'Sign out': {
    forms: ['signOut'],
    async tries(t) {
      t.pass(6 * minuteMs);
      await endSession(t.db, await t.session(t.person.token), t.mine.id, visitor);
      return (await findSession(t.db, t.person.token, t.now())) === null;
    },
  },
  'Step up with a passkey': {
    forms: ['giveSecondFactor'],
    async tries(t) {
      const key = await givePasskey(t);
      return stepsUp(t, async (stale) => {
        const options = await startPasskeyUse(t.db, stale, party, t.now);
        const response = key.sign(options?.challenge ?? '');
        return verifyPasskey(t.db, stale, { response, visitor }, party, t.now);
      });
    },
  },
  'Step up with an authenticator app': {
    forms: ['giveSecondFactor'],
    tries: (t) =>
      stepsUp(t, (stale) =>
        verifyTotp(t.db, stale, { code: codeAt(t.person.secret, t.now()), visitor }, settings, t.now),
      ),
  },
  'Step up with a recovery code': {
    forms: ['giveSecondFactor'],
    tries: (t) =>
      stepsUp(t, (stale) => redeemRecoveryCode(t.db, stale, { code: t.person.recoveryCodes[0] ?? '', visitor }, t.now)),
  },
  'Step up with what a provider says': {
    async tries(t) {
      t.pass(6 * minuteMs);
      const account = { providerId: t.here.providerId, subject: 'account-1', visitor };
      const { token } = await signInWithProvider(t.db, account, t.now);
      const sessions = [await t.session(t.person.token), await t.session(token)];
      return sessions.some((session) => !needsStepUp(session, t.now()));
    },
  },
};

/** The table of the chapter: for each row its cells, by column. */
function readTable(): Map<string, Record<Column, string>> {
  const text = readFileSync(`${import.meta.dirname}/../../../docs/design/identity.md`, 'utf8');
  const [head, , ...lines] = (/^\| Change \|[\s\S]*?\n\n/m.exec(text)?.[0] ?? '').trim().split('\n').map(readCells);
  expect(head).toEqual(['Change', ...columns]);
  return new Map(
    lines.map(([name = '', ...cells]) => [
      name,
      Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? ''])) as Record<Column, string>,
    ]),
  );
}

const readCells = (line: string) =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
const table = readTable();

describe.each(columns)('%s', (column) => {
  const cells = [...table].filter(([, row]) => row[column] !== '–');
  it.each(cells)('%s', async (name, row) => {
    const done = await rows[name]?.tries(await setup(column));
    expect(done === true ? 'yes' : done === false ? 'no' : 'not tried').toBe(row[column]);
  });
});

it('the table has every form of a person who is signed in', () => {
  expect([...table.keys()]).toEqual(Object.keys(rows));
  const forms = routes.filter(({ method, access }) => method === 'POST' && ['person', 'password'].includes(access));
  const tried = new Set(Object.values(rows).flatMap((row) => row.forms ?? []));
  expect(forms.map(({ name }) => name).sort()).toEqual([...tried].sort());
});

it('a password that a provider’s session set opens nothing more once another organization is joined with it', async () => {
  const t = await setup('Of a provider, not confined');
  await t.owner.pool.query('update sign_in set password_hash = null where person_id = $1', [t.person.personId]);
  const { token } = await changePassword(t.db, t.mine, { oldPassword: '', newPassword, visitor }, t.now);
  expect((await t.session(token)).isConfined).toBe(false);
  const organizationId = await t.make.organization();
  const link = await createEnrolment(t.owner, { organizationId, email: t.person.email, by: 'orgctl' }, t.now);
  t.pass(minuteMs);
  const half = await signIn(t.db, { email: t.person.email, password: newPassword, visitor }, t.now);
  const code = { code: codeAt(t.person.secret, t.now()), visitor };
  const own = await verifyTotp(t.db, await t.session(half.token), code, settings, t.now);
  await acceptEnrolment(t.db, await t.session(own.token), { token: link.token, visitor }, t.now);
  // From the next request on, the session of the provider is confined.
  const confined = await t.session(token);
  expect([confined.isConfined, confined.memberships.map((one) => one.organizationId)]).toEqual([true, [t.here.orgId]]);
  const { providers } = await listSignInMethods(t.db, confined);
  expect(providers.map((one) => one.organizationId)).toEqual([t.here.orgId]);
  expect((await t.session(own.token)).memberships).toHaveLength(2);
});
