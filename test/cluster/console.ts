import { fileURLToPath } from 'node:url';
import { generateSync } from 'otplib';
import type { Pool } from 'pg';
import { createHttpVisitor, type HttpVisitor, hiddenFields } from '#test/http-visitor.ts';
import { runCommand } from './command.ts';
import type { Installation } from './installation.ts';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const password = 'violet-harbour-tractor-mango';

/**
 * Enrols an owner in the console of a release and signs in, as a person does with the link that an
 * operator creates. `address` is where the console is reached, `origin` what people open. Returns
 * the signed-in browser.
 * @throws Error with the console's response.
 */
export async function signInToConsole(
  { servers, organizations, pool }: Pick<Installation, 'servers' | 'organizations' | 'pool'>,
  { address, origin }: { address: string; origin: string },
): Promise<HttpVisitor> {
  const [organization] = organizations;
  if (organization === undefined) throw new Error('there is no organization to sign in to');
  const email = await getEmail(pool, organization.id, organization.ownerUserId);
  const printed = await runCommand(
    process.execPath,
    ['apps/orgctl/main.ts', 'person', 'invite', '--org', organization.id, '--email', email, '--region', servers.region],
    { cwd: repository, env: { PATH: process.env.PATH, DATABASE_URL: servers.ownerUrl, CONSOLE_URL: origin } },
  );
  const [, link = ''] = /(\S+\/enrol#[\w-]{43})/.exec(printed) ?? [];
  const enrolling = createHttpVisitor(origin, undefined, address);
  await enrolling.submit(await enrolling.openLink(link), '/enrol/password', { password });
  const setUp = await enrolling.submit('/enrol/factor', '/enrol/totp/start');
  const { secret = '' } = hiddenFields(setUp.text, '/enrol/totp');
  const done = await enrolling.submit(setUp, '/enrol/totp', { code: generateCode(secret) });
  if (!done.text.includes('You’re all set')) throw new Error(`enrolling in the console ended with ${done.status}`);

  const visitor = createHttpVisitor(origin, undefined, address);
  await visitor.submit('/sign-in', '/sign-in', { email, password });
  // A code is accepted once, and never before its time. A recovery code avoids the wait for the
  // app's next one.
  const [factorRecovery = ''] = /(?:[A-Z2-9]{4}-){6}[A-Z2-9]{4}/.exec(done.text) ?? [];
  await visitor.submit('/sign-in/second-factor', '/sign-in/second-factor', { factorRecovery });
  const overview = await visitor.get(`/o/${organization.id}`);
  if (overview.status !== 200) throw new Error(`the console let an owner in and answered ${overview.status}`);
  return visitor;
}

const generateCode = (secret: string) => generateSync({ secret, epoch: Math.floor(Date.now() / 1000), period: 30 });

async function getEmail(pool: Pool, organizationId: string, personId: string): Promise<string> {
  const { rows } = await pool.query<{ email: string }>(
    'select email from membership where organization_id = $1 and person_id = $2',
    [organizationId, personId],
  );
  return rows[0]?.email ?? '';
}
