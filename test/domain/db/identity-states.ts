/**
 * Invalid identity rows for constraints.test.ts: the statement, and the constraint that must reject
 * it.
 */
const hash = (digits: string) => `decode(repeat('${digits}', 32), 'hex')`;
const phc = '$argon2id$v=19$m=19456,t=2,p=1$AAAA$AAAA';

const signIn = `insert into sign_in (person_id, email, password_hash, password_changed_at, created_at)
  values ('$user', 'a@example.org', '${phc}', now(), now())`;
const totp = `${signIn}; insert into second_factor (person_id, kind, name, created_at, totp_sealed, totp_last_step)
  values ('$user', 'totp', 'App', now(), 'x', 1)`;
const passkey = (id: string) =>
  `insert into second_factor (person_id, kind, name, created_at, credential_id, public_key, counter, transports)
    values ('$user', 'passkey', 'Key', now(), '${id}', 'x', 0, '{}')`;
const session = (token = '01') => `
  insert into console_session (token_hash, person_id, state, created_at, last_seen_at, expires_at, user_agent)
  values (${hash(token)}, '$user', 'password_passed', now(), now(), now() + interval '1 hour', '')`;
const challenge = `${signIn}; ${session()};
  insert into challenge (session_id, purpose, expires_at, challenge) select id, 'passkey_use', now(), 'x'
    from console_session`;
const browser = `${signIn};
  insert into known_browser (token_hash, person_id, created_at, expires_at)
    values (${hash('01')}, '$user', now(), now() + interval '1 day')`;
const enrolment = `
  insert into enrolment (organization_id, person_id, token_hash, kind, email, created_at, expires_at)
  values ('$org', '$user', ${hash('01')}, 'invite', 'a@example.org', now(), now() + interval '1 hour')`;
const confirmation = `${signIn};
  insert into sign_in_confirmation (person_id, organization_id, confirmed_at, confirmed_by)
  values ('$user', '$org', now(), 'link')`;
const attempt = (key: string) => `insert into sign_in_failure values (${key}, 1, 0)`;
const code = (codeHash: string) =>
  `${signIn}; insert into recovery_code (person_id, code_hash, created_at) values ('$user', ${codeHash}, now())`;

const provider = `${signIn}; insert into sso_provider
  (organization_id, issuer, client_id, secret_sealed, is_required, created_at)
  values ('$org', 'https://login.example.com', 'console', 'x', false, now())`;
const subject = `${provider}; insert into sso_subject (provider_id, subject, person_id, created_at)
  select id, 'account', '$user', now() from sso_provider`;
const waiting = `${provider};
  insert into sso_waiting (token_hash, provider_id, state, nonce, verifier, return_to, expires_at)
  select ${hash('01')}, id, 'state', 'nonce', 'verifier', '/', now() from sso_provider`;
const chosen = `${provider}; ${enrolment};
  update enrolment set provider_id = p.id, subject = 'account' from sso_provider p`;

export const wrongIdentityStates: [state: string, constraint: string, statement: string][] = [
  ['a sign-in without an address', 'sign_in_email_form', `${signIn}; update sign_in set email = 'no-address'`],
  [
    'a password that is not hashed',
    'sign_in_password_is_argon2id',
    `${signIn}; update sign_in set password_hash = 'hello'`,
  ],
  [
    'two people who sign in with one address',
    'sign_in_email_unique',
    `${signIn}; insert into person (id) values ('other');
     insert into sign_in select 'other', email, password_hash, now(), now() from sign_in`,
  ],
  ['an address with capitals', 'sign_in_email_canonical', `${signIn}; update sign_in set email = 'Ada@example.org'`],
  [
    'a link for an address that browsers do not send',
    'enrolment_email_canonical',
    `${enrolment}; update enrolment set email = 'ada@bücher.example.org'`,
  ],
  ['a second factor of an unknown kind', 'second_factor_kind_known', `${totp}; update second_factor set kind = 'sms'`],
  ['a second factor without a name', 'second_factor_name_length', `${totp}; update second_factor set name = ''`],
  [
    'an app without its last time step',
    'second_factor_totp_whole',
    `${totp}; update second_factor set totp_last_step = null`,
  ],
  ['an app that counts like a passkey', 'second_factor_passkey_whole', `${totp}; update second_factor set counter = 1`],
  ['one passkey twice', 'second_factor_credential_unique', `${signIn}; ${passkey('a')}; ${passkey('a')}`],
  ['a person who signs in without a second factor', 'second_factor_remains', `${totp}; delete from second_factor`],
  ['a recovery code that is no hash', 'recovery_code_hash_length', code(`'AAAA'`)],
  ['two sessions with one token', 'console_session_token_unique', `${signIn}; ${session()}; ${session()}`],
  [
    'a token that is no hash',
    'console_session_token_length',
    `${signIn}; ${session()}; update console_session set token_hash = 'x'`,
  ],
  [
    'a session in an unknown state',
    'console_session_state_known',
    `${signIn}; ${session()}; update console_session set state = 'half'`,
  ],
  [
    'a full session without a second factor',
    'console_session_full_has_second_factor',
    `${signIn}; ${session()}; update console_session set state = 'full'`,
  ],
  [
    'a session that ended before it began',
    'console_session_ends',
    `${signIn}; ${session()}; update console_session set expires_at = created_at - interval '1 second'`,
  ],
  [
    'a browser’s name of 301 characters',
    'console_session_user_agent_length',
    `${signIn}; ${session()}; update console_session set user_agent = repeat('x', 301)`,
  ],
  ['a challenge for nothing known', 'challenge_purpose_known', `${challenge}; update challenge set purpose = 'guess'`],
  ['a passkey’s challenge without one', 'challenge_whole', `${challenge}; update challenge set challenge = null`],
  [
    'a browser’s token that is no hash',
    'known_browser_token_length',
    `${browser}; update known_browser set token_hash = 'x'`,
  ],
  [
    'a browser of a person who does not sign in',
    'known_browser_sign_in',
    `${browser}; insert into person (id) values ('other'); update known_browser set person_id = 'other'`,
  ],
  [
    'a browser that has expired when it is remembered',
    'known_browser_ends',
    `${browser}; update known_browser set expires_at = created_at`,
  ],
  ['a link of an unknown kind', 'enrolment_kind_known', `${enrolment}; update enrolment set kind = 'visit'`],
  ['a link for no address', 'enrolment_email_form', `${enrolment}; update enrolment set email = '@'`],
  [
    'a link that has expired when it is created',
    'enrolment_ends',
    `${enrolment}; update enrolment set expires_at = created_at`,
  ],
  ['a link’s token that is no hash', 'enrolment_token_length', `${enrolment}; update enrolment set token_hash = 'x'`],
  [
    'a link’s password that is not hashed',
    'enrolment_password_is_argon2id',
    `${enrolment}; update enrolment set password_hash = 'x'`,
  ],
  [
    'a recovery that a member created',
    'enrolment_recovery_by_operator',
    `${enrolment}; update enrolment set kind = 'recover', invited_by = '$user'`,
  ],
  [
    'a sign-in that is confirmed by an import',
    'sign_in_confirmation_source_known',
    `${confirmation}; update sign_in_confirmation set confirmed_by = 'import'`,
  ],
  [
    'the confirmation of a person who does not sign in',
    'sign_in_confirmation_sign_in',
    `${confirmation}; insert into person (id) values ('other'); update sign_in_confirmation set person_id = 'other'`,
  ],
  [
    'the confirmation of a person who is no member',
    'sign_in_confirmation_membership',
    `${confirmation}; update sign_in_confirmation set organization_id = gen_random_uuid()`,
  ],
  ['a provider that is no address', 'sso_provider_issuer_form', `${provider}; update sso_provider set issuer = 'x'`],
  [
    'a provider that knows no client',
    'sso_provider_client_id_length',
    `${provider}; update sso_provider set client_id = ''`,
  ],
  [
    'two providers of an organization',
    'sso_provider_organization_unique',
    `${provider}; insert into sso_provider (organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     select organization_id, issuer, client_id, secret_sealed, is_required, created_at from sso_provider`,
  ],
  ['an account without a name', 'sso_subject_length', `${subject}; update sso_subject set subject = ''`],
  [
    'two accounts of a person at one provider',
    'sso_subject_person_unique',
    `${subject}; insert into sso_subject (provider_id, subject, person_id, created_at)
     select provider_id, 'other', person_id, now() from sso_subject`,
  ],
  [
    'a begun sign-in whose token is no hash',
    'sso_waiting_token_length',
    `${waiting}; update sso_waiting set token_hash = 'x'`,
  ],
  [
    'a begun sign-in for a link that is no hash',
    'sso_waiting_link_length',
    `${waiting}; update sso_waiting set link_hash = 'x'`,
  ],
  [
    'a begun sign-in that returns to a long address',
    'sso_waiting_return_to_length',
    `${waiting}; update sso_waiting set return_to = repeat('x', 2001)`,
  ],
  [
    'a begun sign-in for a link and for a session',
    'sso_waiting_one_purpose',
    `${waiting}; ${session()};
     update sso_waiting set link_hash = ${hash('02')}, session_id = s.id from console_session s`,
  ],
  ['a link’s account without a name', 'enrolment_subject_length', `${chosen}; update enrolment set subject = ''`],
  ['a link’s provider without an account', 'enrolment_subject_whole', `${chosen}; update enrolment set subject = null`],
  [
    'a link’s password and account',
    'enrolment_one_first_factor',
    `${chosen}; update enrolment set password_hash = '${phc}'`,
  ],
  ['an attempt on a readable address', 'sign_in_failure_key_is_sha256', attempt(`'a@example.org'`)],
];
