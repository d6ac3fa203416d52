import dns from 'node:dns/promises';
import { generateSync } from 'otplib';
import type { DestinationStream } from 'pino';
import { onTestFinished } from 'vitest';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { enrolmentLink, findLinkToken } from '#domain/identity/token.ts';
import type { FactorSettings } from '#domain/identity/types.ts';
import { openDatabase } from '#domain/open-database.ts';
import { createLog } from '#runtime/log.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { type TestSettings, withConstants } from '#test/constants.ts';
import { createHttpVisitor } from '#test/http-visitor.ts';
import { consoleEnvironment, type OnFinished, setupDatabase, shareInstallation } from '#test/setup.ts';
import { allowSettings, allowSockets, guardSockets } from '#test/socket-guard.ts';
import { startConsole } from '../../apps/console/app.ts';
import { readConfig } from '../../apps/console/config.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';

/** The password of every person in the tests. */
export const goodPassword = 'violet-harbour-tractor-mango';

/**
 * A person who has enrolled with an authenticator app. `sessionToken` belongs to the session that
 * enrolling started.
 */
export interface Enrolled {
  orgId: string;
  personId: string;
  roleId: string | null;
  email: string;
  totpSecret: string;
  recoveryCodes: string[];
  sessionToken: string;
}

/**
 * A console that the tests of a file share; each test creates the people and rows that it needs.
 */
export const shareConsole = (settings: TestSettings = {}) =>
  shareInstallation((onFinished) => setupConsole(settings, onFinished));

/**
 * A console for one test: database, clock, people. All are deleted when the test ends. `settings`
 * replace the console's; `template` is a database to copy. The tests fail when the console connects
 * to anything but PostgreSQL and Temporal.
 */
export async function setupConsole(
  settings: TestSettings = {},
  onFinished: OnFinished = onTestFinished,
  template?: string,
) {
  const { database, owner, make } = await setupDatabase(onFinished, template);
  // The pages' queries of DNS are rejected at once, wherever the tests run.
  const nameServers = dns.getServers();
  dns.setServers(['127.0.0.1:9']);
  onFinished(() => dns.setServers(nameServers));
  const port = await getFreePort();
  const origin = `http://localhost:${port}`;
  allowSockets('test', origin);
  const logLines: string[] = [];
  // Not before the present, because the database's clock writes the audit log.
  const clock = { aheadMs: 0 };
  const now = () => new Date(Date.now() + clock.aheadMs);
  const fixed = consoleEnvironment(database, origin, { WEBHOOK_ALLOW: '127.0.0.0/8', PORT: String(port) });
  // A setting may be replaced by the file that it comes from.
  for (const name of Object.keys(settings)) delete fixed[name.replace(/_FILE$/, '')];
  const environment = { ...fixed, ...settings };
  const config = withConstants(readConfig(environment), settings);
  allowSettings(environment);
  guardSockets(onFinished, 'console');
  const destination = { write: (line: string) => void logLines.push(line) } as DestinationStream;
  const log = createLog({ level: 'info', name: 'console', region: 'us', destination });
  const console = await startConsole(config, log, now);
  onFinished(() => console.stop());
  allowSockets('test', console.metricsUrl);
  const people = await openDatabase({
    server: parsePostgresUrl(database.urls.console),
    applicationName: 'test',
    poolMax: 4,
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
  });
  onFinished(() => people.close());
  const db = people;
  const factors: FactorSettings = config.factors;
  const visitor = { address: '203.0.113.7', userAgent: 'a browser of the tests' };

  /** Creates a link for a member, as an operator does. */
  async function link(member: { orgId: string; userId: string }): Promise<string> {
    const { orgId: organizationId, userId } = member;
    const input = { organizationId, email: `${userId}@example.org`, by: 'orgctl' } as const;
    const { token } = await createEnrolment(owner, input, now);
    return enrolmentLink(origin, token);
  }

  /**
   * An enrolled person: by default an owner of a new organization. Uses the domain's functions,
   * which is fast.
   */
  async function enrol(fields: Parameters<typeof make.member>[0] = {}): Promise<Enrolled> {
    const member = await make.member(fields);
    const token = findLinkToken(await link(member)) ?? '';
    await setEnrolmentPassword(db, { token, password: goodPassword }, now);
    const { secret } = await startEnrolmentTotp(db, token, factors, now);
    const factor = { kind: 'totp', code: codeAt(secret, now()), name: 'Phone' } as const;
    const done = await completeEnrolment(db, { token, factor, visitor }, factors, now);
    return {
      orgId: member.orgId,
      personId: member.userId,
      roleId: member.roleId,
      email: `${member.userId}@example.org`,
      totpSecret: secret,
      recoveryCodes: done.recoveryCodes,
      sessionToken: done.token,
    };
  }

  return {
    database,
    owner,
    make,
    db,
    config,
    origin,
    console,
    logLines,
    now,
    link,
    enrol,
    /** Lets time pass for sessions, links and codes. */
    pass: (ms: number) => {
      clock.aheadMs += ms;
    },
    /** Returns the next code of a person's app, which they cannot have used yet. */
    nextCode: (person: Pick<Enrolled, 'totpSecret'>) => {
      clock.aheadMs += 30_000;
      return codeAt(person.totpSecret, now());
    },
    /** A client without a window or scripts: cookies, forms, custom headers. */
    http: (person?: Pick<Enrolled, 'sessionToken'>) => createHttpVisitor(origin, person?.sessionToken),
  };
}

export type ConsoleInstallation = Awaited<ReturnType<typeof setupConsole>>;

/** Returns the code that an authenticator app shows at a moment. */
export const codeAt = (secret: string, at: Date): string =>
  generateSync({ secret, epoch: Math.floor(at.getTime() / 1000), period: 30 });
