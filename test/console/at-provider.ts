import { seal } from '#domain/encryption/envelope.ts';
import { providerRow } from '#domain/identity/sso-provider.ts';
import { type HttpVisitor, unescaped, type Visited } from '#test/http-visitor.ts';
import { providerClient, startLyingProvider } from '#test/lying-provider.ts';
import type { ConsoleInstallation, Enrolled } from './setup.ts';

export const atSecondFactor = '/sign-in/second-factor';
export type Provider = Awaited<ReturnType<typeof startLyingProvider>>;

/** Starts a provider for an organization; `addProvider` makes it the organization's. */
export const startProvider = (t: ConsoleInstallation, orgId: string): Promise<Provider> =>
  startLyingProvider(`${t.origin}/sign-in/callback/${orgId}`);

/** Gives an organization a provider, and a member the account `account-1` there. */
export async function addProvider(
  t: ConsoleInstallation,
  { issuer }: Pick<Provider, 'issuer'>,
  member: Pick<Enrolled, 'orgId' | 'personId'>,
  subject = 'account-1',
): Promise<string> {
  const id = crypto.randomUUID();
  const sealed = seal(providerClient.clientSecret, providerRow(id), t.config.factors.sealingKeys);
  await t.owner.pool.query(
    `insert into sso_provider (id, organization_id, issuer, client_id, secret_sealed, is_required, created_at)
     values ($1, $2, $3, $4, $5, false, now())`,
    [id, member.orgId, issuer, providerClient.clientId, sealed],
  );
  await link(t, id, subject, member.personId);
  return id;
}

/** Links an account of a provider to a person. */
export const link = (t: ConsoleInstallation, id: string, subject: string, personId: string) =>
  t.owner.pool.query(
    `insert into sso_subject (provider_id, subject, person_id, created_at) values ($1, $2, $3, now())`,
    [id, subject, personId],
  );

export async function getSlug(t: ConsoleInstallation, orgId: string): Promise<string> {
  const { rows } = await t.owner.pool.query<{ slug: string }>('select slug from organization where id = $1', [orgId]);
  return rows[0]?.slug ?? '';
}

/** Starts a sign-in in a browser; returns the address at the provider. */
export async function begin(visitor: HttpVisitor, organization: string): Promise<URL> {
  return findProviderUrl(await visitor.submit('/sign-in/organization', '/sign-in/organization', { organization }));
}

/** Returns the address at the provider that a page leads to. */
export function findProviderUrl({ text }: Visited): URL {
  const [, url = ''] = /http-equiv="refresh" content="0; url=([^"]*)"/.exec(text) ?? [];
  if (url === '') throw new Error(`the page leads to no provider: ${text.slice(text.indexOf('<main'), 3_000)}`);
  return new URL(unescaped(url));
}

/** Brings the provider's answer back. */
export const complete = (visitor: HttpVisitor, back: URL) => visitor.get(back.pathname + back.search);

/** Signs a person in at the provider of their organization, with their second factor. */
export async function signInAtProvider(
  t: ConsoleInstallation,
  provider: Provider,
  person: Enrolled,
): Promise<HttpVisitor> {
  const visitor = t.http();
  const done = await complete(visitor, await provider.browse(await begin(visitor, await getSlug(t, person.orgId))));
  if (done.to !== atSecondFactor) throw new Error(`the sign-in at the provider ended with ${done.status}`);
  await visitor.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(person) });
  return visitor;
}
