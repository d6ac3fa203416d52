import { generateSync } from 'otplib';
import { onTestFinished, vi } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { countFailure, passwordSubject } from '#domain/identity/sign-in-failures.ts';
import { hashToken } from '#domain/identity/token.ts';
import type { FactorSettings, Session, Visitor } from '#domain/identity/types.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { MadeMember } from './make.ts';
import { testSealingKeys } from './secrets.ts';
import { setupDatabase } from './setup.ts';
import { guardSockets } from './socket-guard.ts';
import { detailWithRename } from './write-entries.ts';

export const settings: FactorSettings = {
  sealingKeys: testSealingKeys,
  relyingParty: { id: 'console.example.org', name: 'org-api console', origin: 'https://console.example.org' },
};
export const visitor: Visitor = { address: '203.0.113.7', userAgent: 'a browser' };
export const goodPassword = 'violet-harbour-tractor-mango';
export const minuteMs = 60_000;

/** Returns the code that an authenticator app shows at a moment. */
export const codeAt = (secret: string, at: Date) =>
  generateSync({ secret, epoch: Math.floor(at.getTime() / 1000), period: 30 });

/** 50 failures of strangers from one network: then its unknown browsers wait for 15 minutes. */
export async function blockNetwork(db: Database, address: string, at: Date): Promise<void> {
  for (let n = 0; n < 50; n += 1) await countFailure(db, { subject: passwordSubject(`${address}/${n}`), address }, at);
}

/** 100 failures from as many networks: then a person's unknown browsers wait for 15 minutes. */
export async function blockSubject(db: Database, subject: string, at: Date): Promise<void> {
  for (let n = 0; n < 100; n += 1) await countFailure(db, { subject, address: `198.51.${n}.1` }, at);
}

/** Lets attempts be counted by a test's clock: their library reads that of the process. */
export function countBy(now: () => Date): void {
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now().getTime());
  onTestFinished(() => clock.mockRestore());
}

/** A person who has enrolled with an app, with a session. `secret` is the app's. */
export interface Enrolled {
  personId: string;
  orgId: string;
  email: string;
  secret: string;
  recoveryCodes: string[];
  token: string;
}

/**
 * A database, the console's login on it, and a clock that only the test moves. A test that opens
 * another connection than to the database fails.
 */
export async function setupPeople() {
  guardSockets(onTestFinished, 'identity');
  const { database, owner, make } = await setupDatabase();
  const options = { server: parsePostgresUrl(database.urls.console), applicationName: 'test', poolMax: 8 };
  const console = await openDatabase({ ...options, connectTimeoutMs: 20_000, statementTimeoutMs: 60_000 });
  onTestFinished(() => console.close());
  const db = console;
  // Not before the present, because the database's clock writes the audit log.
  const clock = { at: new Date() };
  const now = () => clock.at;

  /** Returns the token of a link of a member who has not enrolled. */
  async function createToken({ orgId, userId }: MadeMember): Promise<string> {
    const invited = { organizationId: orgId, email: `${userId}@example.org`, by: 'orgctl' } as const;
    return (await createEnrolment(owner, invited, now)).token;
  }

  /** Enrols a member with a link, as the pages do. */
  async function enrol(fields: { orgId?: string; roleKey?: string; permissions?: string[] } = {}): Promise<Enrolled> {
    const member = await make.member(fields);
    const email = `${member.userId}@example.org`;
    const token = await createToken(member);
    await setEnrolmentPassword(db, { token, password: goodPassword }, now);
    const { secret } = await startEnrolmentTotp(db, token, settings, now);
    const factor = { kind: 'totp', code: codeAt(secret, now()) } as const;
    const done = await completeEnrolment(db, { token, factor, visitor }, settings, now);
    const { recoveryCodes, token: sessionToken } = done;
    return { personId: member.userId, orgId: member.orgId, email, secret, recoveryCodes, token: sessionToken };
  }

  return {
    database,
    owner,
    make,
    db,
    clock,
    now,
    enrol,
    /** Gives an organization a provider, to which no test connects. Returns its id. */
    async addProvider(orgId: string): Promise<string> {
      const { rows } = await owner.pool.query<{ id: string }>(
        `insert into sso_provider (organization_id, issuer, client_id, secret_sealed, is_required, created_at)
         values ($1, 'https://login.example.com', 'console', 'x', false, now()) returning id`,
        [orgId],
      );
      return rows[0]?.id ?? '';
    },
    /** Links an account of a provider to a person. */
    linkAccount: (providerId: string, personId: string, subject: string) =>
      owner.pool.query(
        `insert into sso_subject (provider_id, subject, person_id, created_at) values ($1, $2, $3, now())`,
        [providerId, subject, personId],
      ),
    /** Makes a session one that began at a provider. */
    beginAtProvider: (token: string, providerId: string) =>
      owner.pool.query('update console_session set provider_id = $2 where token_hash = $1', [
        hashToken(token),
        providerId,
      ]),
    /** Invites a new member and returns the token of the link. */
    invite: async (): Promise<string> => createToken(await make.member({ status: 'invited' })),
    pass: (ms: number) => {
      clock.at = new Date(clock.at.getTime() + ms);
    },
    async session(token: string): Promise<Session> {
      const found = await findSession(db, token, now());
      if (found === null) throw new Error('the session has ended');
      return found;
    },
    /** Returns the log, oldest first: action and detail. */
    async entries(orgId: string) {
      const { rows } = await owner.pool.query<{ action: string; person: string; detail: Record<string, unknown> }>(
        `select action, person_id as person, host(address) as address, ${detailWithRename} as detail from audit_entry
         where organization_id = $1 order by at, id`,
        [orgId],
      );
      return rows;
    },
  };
}
