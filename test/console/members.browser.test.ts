/** Members, roles and the keys that depend on them, in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { startTestApi } from '#test/setup.ts';
import { closeBrowser, expectQuiet, openVisit, picture } from './browser.ts';
import { chooseApp } from './choose-app.ts';
import { codeAt, goodPassword, setupConsole } from './setup.ts';

const timeout = 180_000;
afterAll(closeBrowser);

/** Enrols with an authenticator app, from the link to the overview. */
async function enrolWithApp(page: Page, link: string, now: () => Date): Promise<void> {
  await page.goto(link);
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Continue' }).click();
  const secret = await chooseApp(page);
  await page.getByLabel('Authenticator code').fill(codeAt(secret, now()));
  await page.getByRole('button', { name: 'Verify code' }).click();
  await page.getByRole('link', { name: 'I’ve saved them' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
}

describe.each(inject('journeyScreens'))('on a %s screen', (screen) => {
  it('an owner invites a person, who enrols, can do only what their role allows, and then gets another role', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    await t.make.role({ orgId: ada.orgId, permissions: ['org.read', 'org.keys.manage'], name: 'Integrations' });
    const owner = await openVisit(t.origin, { screen, sessionToken: ada.sessionToken });
    const { page } = owner;
    await page.goto(`/o/${ada.orgId}`);
    await page.getByRole('link', { name: 'Members & roles' }).click();
    await page.getByText('You are the only member.').waitFor();
    await page.getByRole('link', { name: 'Invite member' }).click();
    await page.getByLabel('Email address').fill('nina@example.org');
    await page.getByRole('textbox', { name: 'Name' }).fill('Nina Ortiz');
    await page.getByRole('button', { name: 'Create invitation' }).click();
    await page.getByRole('heading', { name: 'Invitation created' }).waitFor();
    await picture(page, `journey-invited-${screen}`);
    const link = (await page.getByRole('region', { name: 'Invitation link, to copy' }).textContent()) ?? '';

    const invited = await openVisit(t.origin, { screen });
    await enrolWithApp(invited.page, link.trim(), t.now);
    expect(await invited.page.getByRole('link', { name: 'API keys' }).count()).toBe(0);
    expect((await invited.page.goto(`/o/${ada.orgId}/keys/new`))?.status()).toBe(403);
    expect((await invited.page.goto(`/o/${ada.orgId}/members/invite`))?.status()).toBe(403);
    await invited.page.goto(`/o/${ada.orgId}/members`);
    await invited.page.getByRole('link', { name: 'Ada Rivers' }).click();
    expect(await invited.page.getByRole('button', { name: /Remove role|Suspend|Remove/ }).count()).toBe(0);

    await page.getByRole('link', { name: 'I’ve saved it' }).click();
    await page.getByText('Has the permissions of their roles.').waitFor();
    await page.getByLabel('Assign another role').selectOption({ label: 'Integrations' });
    await page.getByRole('button', { name: 'Assign role' }).click();
    await page.getByText('Role assigned').waitFor();
    await picture(page, `journey-role-given-${screen}`);

    await invited.page.goto(`/o/${ada.orgId}/keys/new`);
    expect(await invited.page.getByLabel('org.clients.read').isEnabled()).toBe(true); // of the role Member
    expect(await invited.page.getByLabel('org.billing.manage').isDisabled()).toBe(true);
    expectQuiet(owner);
    expectQuiet(invited);
  });

  it('a role is removed from an owner after the page lists the affected key: its next call is rejected, and the last owner stays', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const [ada, api] = [await t.enrol({ name: 'Ada Rivers' }), await startTestApi(t.database, { REDIS_URL: '' })];
    const bo = await t.enrol({ orgId: ada.orgId, name: 'Bo Lindqvist' });
    const key = await t.make.apiKey({
      creator: { orgId: ada.orgId, userId: ada.personId, roleId: null },
      label: 'Monthly report',
      scopes: ['org.read', 'org.analytics.read'],
    });
    const read = async () => (await api.get(`/v1/orgs/${ada.orgId}`, { key: key.key })).status;
    expect(await read()).toBe(200);

    const visit = await openVisit(t.origin, { screen, sessionToken: bo.sessionToken });
    const { page } = visit;
    await page.goto(`/o/${ada.orgId}/members`);
    await page.getByRole('link', { name: 'Ada Rivers' }).click();
    await page.getByRole('link', { name: /Remove role Owner/ }).click();
    await page.getByText('1 API key stops working.').waitFor();
    expect(await page.getByRole('listitem').filter({ hasText: 'Monthly report' }).textContent()).toMatch(
      /stops working[\s\S]*the organization[\s\S]*getOrg[\s\S]*getFirmOutcomes/,
    );
    await picture(page, `journey-take-role-${screen}`);
    await page.getByRole('button', { name: 'Remove role' }).click();
    await page.getByText('Role removed').waitFor();
    expect(await read()).toBe(403);

    await page.goto(`/o/${ada.orgId}/leave`);
    await page.getByRole('alert').getByText('The last active owner can’t leave or lose the role.').waitFor();
    expectQuiet(visit);
  });

  it('two browsers assign the last seat: one succeeds, and the other shows the reason', { timeout }, async () => {
    const t = await setupConsole();
    const orgId = await t.make.organization({ invoiced: 1 });
    const [ada, bo] = [await t.enrol({ orgId }), await t.enrol({ orgId })];
    const professional = { orgId, userId: ada.personId, roleId: null };
    for (const name of ['Rossi family', 'Stone family'])
      await t.make.grant({ professional, familyId: await t.make.family({ orgId, name }) });
    const visits = await Promise.all(
      [ada, bo].map(({ sessionToken }) => openVisit(t.origin, { screen, sessionToken })),
    );
    for (const { page } of visits) {
      await page.goto(`/o/${orgId}/clients`);
      await page.getByRole('link', { name: 'Seats', exact: true }).click();
      await page.getByRole('link', { name: 'Assign seat' }).click();
    }
    const [first, second] = visits.map(({ page }) => page);
    await first?.getByRole('link', { name: 'Assign seat… to Rossi family' }).click();
    await second?.getByRole('link', { name: 'Assign seat… to Stone family' }).click();
    await Promise.all(visits.map(({ page }) => page.getByRole('button', { name: 'Assign seat' }).click()));
    const messages = await Promise.all(
      visits.map(({ page }) => page.getByText(/^(Seat assigned|All seats are assigned)/).textContent()),
    );
    expect(messages.sort()).toEqual(['All seats are assigned. End one, or buy more seats.', 'Seat assigned.']);
    for (const [index, visit] of visits.entries()) {
      await picture(visit.page, `journey-last-seat-${index + 1}-${screen}`);
      expectQuiet(visit);
    }
  });
});
