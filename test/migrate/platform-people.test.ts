/** Schema `platform`: what organizations and members may have where the contract names no rule. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { createEnrolment, createLink } from '#domain/identity/create-link.ts';
import { setupPlatform } from '#test/platform.ts';
import { startTestApi } from '#test/setup.ts';
import { importDocument, type Loose, rejection, smallDocument } from '../import/document.ts';

async function setupRead() {
  const t = await setupPlatform();
  const { organization, ...created } = await t.create();
  const api = await startTestApi(t.database);
  const { key } = await t.make.apiKey({ creator: await t.make.member({ orgId: organization }) });
  /** Returns the body of a read of the organization. */
  const read = async (path = ''): Promise<Loose> => {
    const response = await api.get(`/v1/orgs/${organization}${path}`, { key });
    expect(response.status).toBe(200);
    return response.json();
  };
  return { ...t, ...created, organization, read };
}

it('has no two slugs that differ in case only: a slug has lower-case letters, digits and . _ - alone', async () => {
  const { call, create, owner, database } = await setupPlatform();
  const { organization, slug } = await create();
  const put = (text: string, id = organization) =>
    call('put_organization', { organization: id, name: 'Harbor', slug: text, kind: 'law_firm' });
  for (const text of [
    slug.toUpperCase(),
    'Harbor',
    'har bor',
    '-harbor',
    'caf\u00e9',
    'harbor\n',
    '',
    'x'.repeat(256),
  ]) {
    expect([text, await put(text, randomUUID())]).toEqual([text, '22023 argument_invalid: slug']);
    const document = smallDocument();
    Object.assign(document.organizations[0], { slug: text });
    const { problems } = await rejection(importDocument(database.ownerUrl, document));
    expect(problems.map(({ path }) => path)).toEqual(['$.organizations[0].slug']);
    const update = owner.pool.query('update organization set slug = $1 where id = $2', [text, organization]);
    await expect(update).rejects.toMatchObject({ constraint: 'organization_slug_form' });
  }
  for (const text of ['harbor', '7.harbor_family-law', 'x'.repeat(255)]) expect(await put(text)).toBe('changed');
});

it('hands the status of an organization through, which is a text of the platform', async () => {
  const { call, organization, slug, read } = await setupRead();
  const status = 'on probation';
  const values = { organization, name: 'Harbor', slug, kind: 'law_firm', status };
  expect(await call('put_organization', values)).toBe('changed');
  expect(await read()).toMatchObject({ status });
});

it('lets two members have one address, and invites neither of them until the other has left', async () => {
  const { call, owner, organization, read } = await setupRead();
  const email = 'office@example.org';
  const put = (member: string, status: string) =>
    call('put_member', { organization, member, name: member, email, roles: ['member'], status });
  for (const member of ['usr_bo', 'usr_cy']) expect(await put(member, 'active')).toBe('created');
  const addresses = (await read('/members')).filter((member: { email: string }) => member.email === email);
  expect(addresses).toHaveLength(2);
  const request = { organizationId: organization, by: 'orgctl' } as const;
  const ambiguous = { reason: 'email_ambiguous' };
  await expect(createEnrolment(owner, { ...request, email })).rejects.toMatchObject(ambiguous);
  await expect(createLink(owner, { ...request, personId: 'usr_bo' })).rejects.toMatchObject(ambiguous);
  expect(await put('usr_cy', 'left')).toBe('changed');
  expect(await createEnrolment(owner, { ...request, email })).toMatchObject({ personId: 'usr_bo' });
});

it('lets a member have no role, who then has clients and no permission', async () => {
  const { call, organization, family, read, make } = await setupRead();
  const member = { organization, member: 'usr_bo', name: 'Bo', email: 'bo@example.org', roles: [] };
  expect(await call('put_member', member)).toBe('created');
  const id = randomUUID();
  const grant = { organization, id, kind: 'neutral', professional: 'usr_bo', family };
  expect(await call('start_grant', grant)).toBe('created');
  expect(await read('/members')).toContainEqual(expect.objectContaining({ userId: 'usr_bo', roles: [] }));
  expect((await read('/clients')).clients).toEqual([expect.objectContaining({ grantId: id, professional: 'Bo' })]);
  const creator = { orgId: organization, userId: 'usr_bo', roleId: null };
  await expect(make.apiKey({ creator, scopes: ['org.read'] })).rejects.toMatchObject({ reason: 'scope_not_held' });
});
