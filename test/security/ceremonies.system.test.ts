/** The ceremonies of passkeys and authenticator apps, with every field replaced. */
import { describe, expect, it } from 'vitest';
import { addPasskey, addTotp, startPasskey, startTotp } from '#domain/identity/factors.ts';
import { startPasskeyUse, verifyPasskey, verifyTotp } from '#domain/identity/second-factor.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { createAuthenticator } from '#test/authenticator.ts';
import { codeAt, goodPassword, settings, setupPeople, visitor } from '#test/people.ts';
import { reportTried } from './tried.ts';

const tried = reportTried('ceremonies');
const party = settings.relyingParty;
type Json = null | string | number | boolean | Json[] | { [name: string]: Json };
type People = Awaited<ReturnType<typeof setupPeople>>;

/** What a field is replaced with; undefined leaves it out. */
const replacements = (genuine: Json, other: Json): (Json | undefined)[] => [
  undefined,
  null,
  '',
  0,
  -1,
  true,
  [],
  {},
  [genuine],
  { toString: 'x' },
  'x',
  'A'.repeat(15_000),
  '😀\u0000',
  typeof genuine === 'string' ? `${genuine}=` : 'AA',
  typeof genuine === 'string' ? genuine.slice(0, -4) : 'AAAA',
  typeof genuine === 'string' ? genuine.split('').reverse().join('') : 1e308,
  other,
];

/**
 * Fields that the server does not use, or that it may read from another one. With these replaced it
 * may accept, and then records the genuine credential.
 */
const unused =
  /^(clientExtensionResults|response\.transports|authenticatorAttachment|response\.clientDataJSON~crossOrigin)/;

/**
 * Returns the paths of all fields; those within the client's data, which is JSON in base64url,
 * behind "~".
 */
function listPaths(value: Json, prefix = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const inner = name === 'clientDataJSON' ? Object.keys(parse(field as string)).map((each) => `${path}~${each}`) : [];
    return [path, ...inner, ...(Array.isArray(field) ? [] : listPaths(field, path))];
  });
}

/** Returns each field with each replacement. */
const listAlterations = (response: object) =>
  listPaths(response as Json).flatMap((path) => replacements('', '').map((_by, index) => ({ path, index })));

const parse = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, Json>;

/** Returns a copy with one field replaced. */
function replaceAt(value: Json, path: string, by: Json | undefined): Json {
  const copy = structuredClone(value) as Record<string, Json>;
  const [outer = '', inner] = path.split('~');
  const names = outer.split('.');
  const last = names.pop() ?? '';
  const holder = names.reduce((at, name) => at[name] as Record<string, Json>, copy);
  const put = (at: Record<string, Json>, name: string) => {
    if (by === undefined) delete at[name];
    else at[name] = by;
  };
  if (inner === undefined) put(holder, last);
  else {
    const data = parse(holder[last] as string);
    put(data, inner);
    holder[last] = Buffer.from(JSON.stringify(data)).toString('base64url');
  }
  return copy;
}

/** Returns the field at a path. */
function readAt(value: Json, path: string): Json {
  const [outer = '', inner] = path.split('~');
  const found = outer.split('.').reduce<Json>((at, name) => (at as Record<string, Json>)[name] ?? null, value);
  return inner === undefined ? found : (parse(found as string)[inner] ?? null);
}

/** Resolves to 'accepted' or the reason of the error. @throws every other error. */
const getOutcome = (ceremony: Promise<unknown>): Promise<string> =>
  ceremony.then(
    () => 'accepted',
    (error: { name?: string; reason?: string }) => {
      if (error.name !== 'IdentityError' || error.reason === undefined) throw error;
      return error.reason;
    },
  );

describe('with any field missing, of another type, huge, or of another ceremony', () => {
  let t: People;
  const forgetFailures = () => t.owner.pool.query('delete from sign_in_failure');
  const factors = async () =>
    (await t.owner.pool.query('select person_id, kind, credential_id, public_key from second_factor order by id')).rows;
  const sessions = async () =>
    (await t.owner.pool.query(`select count(*)::int as full from console_session where state = 'full'`)).rows[0].full;

  it('a passkey is not registered, or it is the genuine one', async () => {
    t = await setupPeople();
    const person = await t.enrol();
    const session = await t.session(person.token);
    const strange = createAuthenticator();
    const other = strange.register((await startPasskey(t.db, session, party, t.now)).challenge);
    for (const { path, index } of listAlterations(createAuthenticator().register('x'))) {
      const key = createAuthenticator();
      const genuine = key.register((await startPasskey(t.db, session, party, t.now)).challenge) as unknown as Json;
      const by = replacements(readAt(genuine, path), readAt(other as unknown as Json, path))[index];
      const response = replaceAt(genuine, path, by);
      const before = await factors();
      const input = { response, name: 'Phone', visitor };
      const outcome = await getOutcome(addPasskey(t.db, session, input, party, t.now));
      tried('registrations');
      const added = (await factors()).filter(
        ({ credential_id }) => !before.some((one) => one.credential_id === credential_id),
      );
      if (outcome === 'accepted') {
        // Another key's whole attestation registers that key: the sender answers for either.
        const isOther = path === 'response.attestationObject' && by === other.response.attestationObject;
        const isGenuine = unused.test(path) || isSame(by, readAt(genuine, path));
        expect([path, by, isOther || isGenuine]).toEqual([path, by, true]);
        expect(added.map(({ credential_id }) => credential_id)).toEqual([isOther ? strange.id : key.id]);
        await t.owner.pool.query(`delete from second_factor where kind = 'passkey'`);
      } else expect([path, by, added]).toEqual([path, by, []]);
      await forgetFailures();
    }
  });

  it('a passkey does not sign in', async () => {
    t = await setupPeople();
    const [person, stranger] = [await t.enrol(), await t.enrol()];
    const key = createAuthenticator();
    const mine = await t.session(person.token);
    const { challenge } = await startPasskey(t.db, mine, party, t.now);
    await addPasskey(t.db, mine, { response: key.register(challenge), name: 'Laptop', visitor }, party, t.now);
    const half = await t.session(
      (await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now)).token,
    );
    const strange = createAuthenticator();
    const theirs = await t.session(stranger.token);
    const setup = await startPasskey(t.db, theirs, party, t.now);
    await addPasskey(t.db, theirs, { response: strange.register(setup.challenge), name: '', visitor }, party, t.now);
    const other = strange.sign((await startPasskeyUse(t.db, theirs, party, t.now))?.challenge ?? '');
    const before = await sessions();
    for (const { path, index } of listAlterations(key.sign('x'))) {
      const genuine = key.sign((await startPasskeyUse(t.db, half, party, t.now))?.challenge ?? '') as unknown as Json;
      const by = replacements(readAt(genuine, path), readAt(other as unknown as Json, path))[index];
      if (unused.test(path) || isSame(by, readAt(genuine, path))) continue;
      const response = replaceAt(genuine, path, by);
      const outcome = await getOutcome(verifyPasskey(t.db, half, { response, visitor }, party, t.now));
      tried('sign-ins');
      expect([path, by, outcome]).toEqual([path, by, 'wrong_passkey']);
      await forgetFailures();
    }
    expect(await sessions()).toBe(before);
    // The genuine response signs in, once.
    const response = key.sign((await startPasskeyUse(t.db, half, party, t.now))?.challenge ?? '');
    const use = () => getOutcome(verifyPasskey(t.db, half, { response, visitor }, party, t.now));
    expect(await use()).toBe('accepted');
    expect(await use()).not.toBe('accepted');
  });

  it('a code neither signs in nor adds an app', async () => {
    t = await setupPeople();
    const [person, stranger] = [await t.enrol(), await t.enrol()];
    const session = await t.session(person.token);
    const { secret } = await startTotp(t.db, session, settings, t.now);
    const half = await t.session(
      (await signIn(t.db, { email: person.email, password: goodPassword, visitor }, t.now)).token,
    );
    const later = (minutes: number) => new Date(t.now().getTime() + minutes * 60_000);
    const right = codeAt(secret, t.now());
    const used = codeAt(person.secret, t.now()); // enrolling used it
    const codes = [
      '',
      ' ',
      '0',
      '12345',
      '1234567',
      'abcdef',
      '-12345',
      '1e5000',
      '0x1234',
      '１２３４５６',
      '١٢٣٤٥٦',
      `${right}0`,
      `0${right}`,
      `${right}\u0000`,
      '9'.repeat(10_000),
      used,
      codeAt(stranger.secret, t.now()),
      codeAt(person.secret, later(1)),
      codeAt(person.secret, later(-1.5)),
      codeAt(secret, later(1)),
    ].filter((code) => code !== right);
    const [before, enrolled] = [await sessions(), await factors()];
    for (const code of codes) {
      const outcomes = [
        await getOutcome(addTotp(t.db, session, { code, name: 'Phone', visitor }, settings, t.now)),
        await getOutcome(verifyTotp(t.db, half, { code, visitor }, settings, t.now)),
      ];
      tried('codes', 2);
      expect([code, outcomes]).toEqual([code, ['wrong_code', 'wrong_code']]);
      await forgetFailures();
    }
    expect([await sessions(), await factors()]).toEqual([before, enrolled]);
  });
});

/** Whether a value is the genuine one, or another way to write its bytes: with padding. */
const isSame = (by: Json | undefined, genuine: Json) =>
  by === genuine ||
  JSON.stringify(by) === JSON.stringify(genuine) ||
  (typeof by === 'string' && by.replace(/=+$/, '') === genuine);
