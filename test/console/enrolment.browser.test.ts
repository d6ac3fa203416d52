/** Enrolling and signing in as a person does it, in a real browser. */
import { afterAll, describe, expect, inject, it } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { changeAddress } from '#domain/identity/orgctl-actions.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { addAuthenticator, closeBrowser, expectQuiet, openVisit, picture, ready } from './browser.ts';
import { chooseApp } from './choose-app.ts';
import { codeAt, goodPassword, setupConsole } from './setup.ts';

const timeout = 120_000;
afterAll(closeBrowser);

describe.each(inject('journeyScreens'))('on a %s screen', (screen) => {
  it('a person enrols with an authenticator app, saves recovery codes, signs out, and signs in again with a code', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const ada = await t.make.member({ name: 'Ada Rivers' });
    const visit = await openVisit(t.origin, { screen });
    const { page } = visit;

    const link = await t.link(ada);
    const [, token = ''] = link.split('#');
    const seen: string[] = [];
    page.on('request', (request) => seen.push(request.url(), ...Object.values(request.headers())));
    await page.goto(link);
    // No URL that a server, a proxy or the page's history sees contains the link's token.
    await page.waitForURL(`${t.origin}/enrol/step`);
    await ready(page);
    expect(token).toHaveLength(43);
    expect(seen.filter((text) => !text.includes('enrolment') && text.includes(token))).toEqual([]);
    await page.goBack();
    expect(page.url()).not.toContain(token);
    await page.goto('/enrol');
    await page.getByRole('link', { name: 'Continue with the link that you opened before' }).click();
    await picture(page, `enrol-password-${screen}`);
    await page.getByLabel('Password').fill('password1234');
    await page.getByRole('button', { name: 'Continue' }).click();
    await expect.poll(() => page.locator('#field-password-problem').textContent()).toMatch(/common|guess/i);
    await page.getByLabel('Password').fill(goodPassword);
    await page.getByRole('button', { name: 'Continue' }).click();
    const secret = await chooseApp(page);
    expect(secret).toMatch(/^[A-Z2-7]{32}$/);
    await picture(page, `enrol-totp-${screen}`);
    await page.getByLabel('Authenticator code').fill(codeAt(secret, t.now()));
    await page.getByRole('button', { name: 'Verify code' }).click();
    await page.getByRole('heading', { name: 'You’re all set' }).waitFor();
    const codes = ((await page.getByRole('region', { name: 'Recovery codes' }).last().textContent()) ?? '').match(
      /[\w-]{29}/g,
    );
    expect(codes?.length).toBe(10);
    await picture(page, `enrol-recovery-codes-${screen}`);
    await page.getByRole('link', { name: 'I’ve saved them' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await picture(page, `overview-new-${screen}`);

    await page.locator('details.menu summary').click();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('You are signed out.').waitFor();
    await page.getByLabel('Email address').fill(`${ada.userId}@example.org`);
    await page.getByLabel('Password').fill(goodPassword);
    await picture(page, `sign-in-${screen}`);
    await page.getByRole('button', { name: 'Continue' }).click();
    await picture(page, `second-factor-totp-${screen}`);
    await page.getByLabel('Authenticator code').fill(t.nextCode({ totpSecret: secret }));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expectQuiet(visit);
  });

  it('every address that can be invited can sign in as it is typed, and one that programs read differently is neither', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const [owner, ada] = [await t.enrol({ name: 'Owner' }), await t.enrol()];
    const [inviter, visitor] = [
      await openVisit(t.origin, { screen, sessionToken: owner.sessionToken }),
      await openVisit(t.origin, { screen }),
    ];
    const enter = async (email: string, button: string, path: string, { page } = visitor) => {
      await page.goto(path);
      await page.getByLabel('Email address').fill(email);
      if (path === '/sign-in') await page.getByLabel('Password').fill(goodPassword);
      else await page.getByRole('textbox', { name: 'Name' }).fill('Nina Ortiz');
      await page.getByRole('button', { name: button }).click();
      return page;
    };
    const invite = (email: string) => enter(email, 'Create invitation', `/o/${owner.orgId}/members/invite`, inviter);
    let current = ada.email;
    for (const local of ['o"neil', 'ada..b', '.ada', 'ada.', 'a(b)', 'a,b', 'a<b>', 'a\\b']) {
      // The field's text is what the server gets, in the script of the person.
      const email = `${local}@bücher.example.org`;
      await (await invite(email)).getByRole('heading', { name: 'Invitation created' }).waitFor();
      current = (await changeAddress(t.owner, { email: current, to: `${local}@xn--bcher-kva.example.org` })).email;
      await (await enter(email, 'Continue', '/sign-in')).waitForURL('**/sign-in/second-factor');
      await visitor.page.getByRole('button', { name: 'Use a different account' }).click();
      await visitor.page.getByText('You are signed out.').waitFor();
    }
    for (const page of [
      await invite('ada@faß.example.org'),
      await enter('ada@faß.example.org', 'Continue', '/sign-in'),
    ])
      await page.locator('#field-email-problem').getByText('domain is in its ASCII form').waitFor();
    await changeAddress(t.owner, { email: current, to: 'ada@xn--fa-hia.example.org' });
    await (await enter('ada@xn--fa-hia.example.org', 'Continue', '/sign-in')).waitForURL('**/sign-in/second-factor');
    expectQuiet(visitor);
  });

  it('a link can be pasted without a script, and a second link replaces the first', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const [ada, bo] = [await t.make.member(), await t.make.member()];
    const [first, second] = [await t.link(ada), await t.link(bo)];
    const visit = await openVisit(t.origin, { screen, script: false });
    const { page } = visit;
    await page.goto(first);
    await page.getByLabel('Link').fill('https://example.org/nothing');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Paste the whole link, with everything after').first().waitFor();
    await page.getByLabel('Link').fill(first);
    await page.getByRole('button', { name: 'Continue' }).click();
    expect(await page.getByLabel('Email address').inputValue()).toContain(ada.userId);

    const withScript = await openVisit(t.origin, { screen });
    for (const [link, whose] of [
      [first, ada],
      [second, bo],
    ] as const) {
      await withScript.page.goto(link);
      await withScript.page.waitForURL(`${t.origin}/enrol/step`);
      expect(await withScript.page.getByLabel('Email address').inputValue()).toContain(whose.userId);
    }
    expectQuiet(withScript);
  });

  it('a person enrols with a passkey and signs in with it, by an address and a password beyond ASCII', {
    timeout,
  }, async () => {
    const t = await setupConsole();
    const organizationId = await t.make.organization();
    const input = { organizationId, name: 'Ada', roleKeys: ['owner'], by: 'orgctl' } as const;
    const email = 'info.a@bücher.example.org';
    const { token } = await createEnrolment(t.owner, { ...input, email }, t.now);
    const password = 'café-violet-harbour-Pätzold';
    const visit = await openVisit(t.origin, { screen });
    const { page } = visit;
    await addAuthenticator(visit);

    await page.goto(enrolmentLink(t.origin, token));
    await page.getByLabel('Password').fill(password.normalize('NFD'));
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('heading', { name: 'Choose your second factor' }).waitFor();
    await picture(page, `enrol-choice-${screen}`);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await ready(page);
    await page.getByRole('button', { name: 'Create passkey' }).click();
    await page.getByRole('heading', { name: 'You’re all set' }).waitFor();
    await page.getByRole('link', { name: 'I’ve saved them' }).click();
    await page.locator('details.menu summary').click();
    await page.getByRole('button', { name: 'Sign out' }).click();

    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Continue' }).click();
    await ready(page);
    await picture(page, `second-factor-passkey-${screen}`);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    expectQuiet(visit);
  });
});
