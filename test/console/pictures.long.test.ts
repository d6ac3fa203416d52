/**
 * The pictures that README and the documents show, of real pages with data of the tests. Values that differ between
 * runs (ids, keys, secrets, ports, times) are replaced by fixed ones before the picture is taken,
 * so a picture changes only when its page does. `npm run tool -- pictures` writes them where the documents
 * find them.
 */
import { writeFileSync } from 'node:fs';
import { createTransport } from 'nodemailer';
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { startTestApi } from '#test/setup.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { exampleOrgId, responseExamples } from '../../apps/api/openapi/examples.ts';
import { startInbox } from '../../apps/dev/inbox.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { renderHtml, renderText } from '../../apps/worker/mail/render.ts';
import { composeText } from '../../apps/worker/mail/texts.ts';
import { addProvider } from './at-provider.ts';
import { closeBrowser, openVisit, picture, pictureFile, ready } from './browser.ts';
import { reduceColors } from './reduce-colors.ts';
import { type ConsoleInstallation, type Enrolled, goodPassword, setupConsole } from './setup.ts';
import { link } from './unpack-evidence.ts';
import { fillAttempts, insertWebhook } from './webhook-stories.ts';

/** Maximum size of a picture, in bytes. */
const pictureMaxBytes = 60_000;
/** Width of a picture beside text, of one of the reference, and of screens of phones, in CSS pixels. */
const wide = 900;
const reference = 1_280;
const phone = 390;
const narrow = 320;
/** Width of a sheet of A4 within the margins of browsers. */
const paper = 718;

/** The organization of the reference's examples, so that all pictures show the same one. */
const { name: organization, slug } = (responseExamples.getOrg?.firm?.value ?? {}) as { name: string; slug: string };

afterAll(closeBrowser);

interface Shown {
  name: string;
  /** In CSS pixels. */
  size: { width: number; height: number };
  scheme?: 'dark';
  take: (page: Page, t: ConsoleInstallation, ada: Enrolled) => Promise<void>;
}

const pictures: readonly Shown[] = [
  {
    name: 'second-factor',
    size: { width: wide, height: 510 },
    async take(page, t) {
      await page.context().clearCookies();
      await page.goto(await t.link(await t.make.member()));
      await page.getByLabel('Password').fill(goodPassword);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('heading', { name: 'Choose your second factor' }).waitFor();
    },
  },
  {
    name: 'overview',
    size: { width: wide, height: 694 },
    take: async (page, _t, { orgId }) => void (await page.goto(`/o/${orgId}`)),
  },
  {
    name: 'new-key',
    size: { width: wide, height: 670 },
    async take(page, _t, { orgId }) {
      await page.goto(`/o/${orgId}/keys/new`);
      await page.getByLabel('Name').fill('Monthly report');
      await page.getByRole('checkbox', { name: 'org.read' }).check();
      await page.getByRole('button', { name: 'Create API key' }).click();
      await page.getByRole('heading', { name: 'API key created' }).waitFor();
    },
  },
  { name: 'delivery', size: { width: wide, height: 1_082 }, take: openDelivery },
  { name: 'delivery-phone', size: { width: phone, height: 1_010 }, take: openDelivery },
  {
    name: 'overview-phone',
    size: { width: phone, height: 936 },
    async take(page, t, ada) {
      await t.make.apiKey({ creator: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
      await page.goto(`/o/${ada.orgId}`);
    },
  },
  {
    name: 'settings',
    size: { width: wide, height: 1_040 },
    async take(page, _t, { orgId }) {
      await page.goto(`/o/${orgId}/settings`);
      await page.getByLabel('Time zone').selectOption('America/New_York');
      await page.getByLabel('Security contact').fill('it-desk@example.org');
      await page.getByLabel('Allowed address domains').fill('example.org');
      await page.getByLabel('Require a passkey').check();
    },
  },
  { name: 'single-sign-on', size: { width: wide, height: 530 }, take: openProvider },
  { name: 'webhook-settings', size: { width: wide, height: 570 }, take: openWebhookSettings },
  { name: 'receipt', size: { width: wide, height: 905 }, take: openReceipt },
  {
    name: 'receipt-on-paper',
    size: { width: paper, height: 1_015 },
    async take(page, t, ada) {
      await openReceipt(page, t, ada);
      await page.emulateMedia({ media: 'print' });
    },
  },
  {
    name: 'evidence',
    size: { width: wide, height: 1_030 },
    async take(page, t, { orgId }) {
      await link(t);
      await page.goto(`/o/${orgId}/audit-log/evidence`);
    },
  },
  { name: 'mail', size: { width: narrow, height: 960 }, take: openMail },
  { name: 'reference', size: { width: reference, height: 800 }, take: openReference('getOrg') },
  {
    name: 'reference-event',
    size: { width: reference, height: 600 },
    scheme: 'dark',
    take: openReference('onClientEnded'),
  },
  { name: 'reference-phone', size: { width: phone, height: 1_200 }, take: openReference('getOrg') },
];

it('the pictures of the documents are small, and the same in every run', { timeout: 600_000 }, async () => {
  const sizes: Record<string, number> = {};
  for (const shown of pictures) {
    const first = await take(shown);
    expect([shown.name, (await take(shown)).equals(first)]).toEqual([shown.name, true]);
    sizes[shown.name] = first.length;
  }
  expect(Object.entries(sizes).filter(([, bytes]) => bytes > pictureMaxBytes)).toEqual([]);
});

/** Takes one picture in a new installation. Returns the file's bytes. */
async function take(shown: Shown): Promise<Buffer> {
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1', MAIL_FROM: 'console@example.org' });
  const orgId = await t.make.organization({ name: organization });
  await t.owner.pool.query('update organization set slug = $2 where id = $1', [orgId, slug]);
  const ada = await t.enrol({ name: 'Ada Rivers', orgId });
  const { sessionToken } = ada;
  const { page, context } = await openVisit(t.origin, { sessionToken, ...(shown.scheme && { scheme: shown.scheme }) });
  await page.setViewportSize(shown.size);
  await shown.take(page, t, ada);
  if (page.url().startsWith(t.origin)) {
    await ready(page);
    await page.evaluate(steady(orgId));
  }
  const taken = await picture(page, shown.name, { fullPage: false });
  const reduced = await reduceColors(await context.newPage(), taken);
  writeFileSync(pictureFile(shown.name), reduced);
  await context.close();
  return reduced;
}

/**
 * A delivery that failed once, with the receiver's cause and remedy, and succeeded with the next
 * attempt. The database wrote its event, as it writes every one.
 */
async function openDelivery(page: Page, t: ConsoleInstallation, ada: Enrolled): Promise<void> {
  const webhook = await insertWebhook(t, ada);
  await t.make.grant({ professional: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
  const { rows } = await t.owner.pool.query(
    `update delivery set state = 'delivered', run = 1, attempts = 2, sequence = 12, due_at = null,
       settled_at = created_at + interval '5 s'
     where webhook_id = $1 returning event_id as "eventId", created_at as "createdAt", settled_at as "settledAt"`,
    [webhook.id],
  );
  const { eventId, createdAt, settledAt } = rows[0];
  await t.make.attempt({ webhook, eventId, status: 503, cause: 'answered_unavailable', startedAt: createdAt });
  await t.make.attempt({ webhook, eventId, status: 200, startedAt: settledAt });
  await fillAttempts(t, eventId);
  await page.goto(`/o/${ada.orgId}/webhooks/${webhook.id}/deliveries/${eventId}`);
}

/** The organization's provider, at which the owner has signed in. */
async function openProvider(page: Page, t: ConsoleInstallation, ada: Enrolled): Promise<void> {
  const id = await addProvider(t, { issuer: 'https://login.example.com' }, ada);
  await t.owner.pool.query('update console_session set provider_id = $1', [id]);
  await page.goto(`/o/${ada.orgId}/sign-in`);
}

/** A webhook behind a gateway that accepts few requests. */
async function openWebhookSettings(page: Page, t: ConsoleInstallation, ada: Enrolled): Promise<void> {
  const headers = ['Authorization', 'X-Api-Key'].map((name) => ({ name, value: 'of the gateway' }));
  const { id } = await insertWebhook(t, ada, { postsPerSecond: 5, headers });
  await page.goto(`/o/${ada.orgId}/webhooks/${id}?tab=settings`);
}

/** The receipt of access whose end one webhook acknowledged, and another gets again. */
async function openReceipt(page: Page, t: ConsoleInstallation, ada: Enrolled): Promise<void> {
  const { orgId } = ada;
  const professional = await t.make.member({ orgId, name: 'Mina Álvarez', roleKey: 'member' });
  const familyId = await t.make.family({ orgId, name: 'Park–Oduya family' });
  const grant = await t.make.grant({ professional, familyId });
  await insertWebhook(t, ada);
  await insertWebhook(t, ada, { description: 'Reporting', url: 'https://reports.example.com/events' });
  await page.goto(`/o/${orgId}/clients/${grant.id}/end`);
  await page.getByRole('button', { name: /^End / }).click();
  await page.getByText('Access ended.').waitFor();
  const { rows } = await t.owner.pool.query(
    `update delivery d set run = 1, attempts = 1, state = case w.number when 1 then 'delivered' else 'running' end,
       settled_at = case w.number when 1 then d.created_at end,
       due_at = case w.number when 2 then d.created_at + interval '5 minutes' end
     from webhook w where w.id = d.webhook_id and w.organization_id = $1
     returning w.id, w.number, d.event_id as "eventId", d.created_at as "startedAt"`,
    [orgId],
  );
  for (const { id, number, eventId, startedAt } of rows)
    await t.make.attempt({ webhook: { id, orgId }, eventId, startedAt, status: number === 1 ? 200 : 503 });
  await link(t);
  await page.goto(`/o/${orgId}/clients/${grant.id}/receipt`);
}

/** A mail as the inbox of `npm start` shows it. */
async function openMail(page: Page): Promise<void> {
  const items = [{ id: exampleOrgId, number: 1, host: 'hooks.example.com', at: '2027-03-02T10:05:12Z' }];
  const text = composeText(
    {
      kind: 'webhook.failing',
      organizationId: exampleOrgId,
      personId: 'usr_1',
      token: null,
      createdAt: new Date('2027-03-02T11:10:00Z'),
      facts: { organization, items },
    },
    'http://localhost:8083',
  );
  const { mailUrl, inbox } = await startInbox({ smtpPort: await getFreePort(), pagePort: await getFreePort() });
  allowSockets('test', mailUrl);
  const smtp = createTransport(mailUrl);
  const stop = 'http://localhost:8083/account/notifications';
  await smtp.sendMail({
    from: 'console@example.org',
    to: 'ada@example.org',
    subject: text.subject,
    text: renderText(text, stop),
    html: renderHtml(text, stop),
  });
  smtp.close();
  await page.goto(`${inbox}1`);
}

/** A part of the reference, scrolled to the top. */
function openReference(part: string): Shown['take'] {
  return async (page, t) => {
    const { url } = await startTestApi(t.database);
    await page.goto(`${url}/docs#${part}`);
    await page.locator(`nav a[aria-current][href="#${part}"]`).waitFor({ state: 'attached' });
  };
}

/**
 * Replaces in the page every time and month, with steps of 5 seconds between times, and every id, hash, key, secret,
 * email address and port by a sample. Different ids stay different, and the organization has that of the examples.
 */
const steady = (orgId: string): string => `(() => {
  const times = [...document.querySelectorAll('time')];
  const first = Math.min(...times.map((time) => Date.parse(time.dateTime)));
  for (const time of times) {
    const passedMs = Math.floor((Date.parse(time.dateTime) - first) / 5_000) * 5_000;
    const moment = new Date(Date.UTC(2027, 2, 2, 10, 5, 12) + passedMs);
    const timeStyle = 'zoned' in time.dataset ? 'long' : 'exact' in time.dataset ? 'medium' : 'short';
    const text = moment.toLocaleString('en-US', { dateStyle: 'medium', timeStyle, timeZone: 'UTC' });
    time.textContent = text.replace(/\\s(?=[AP]M)/, '\\u00a0');
    time.title = moment.toISOString().slice(0, 19).replace('T', ' ') + ' UTC';
    time.removeAttribute('datetime');
  }
  const ids = [];
  const idSample = (id) => {
    if (id === '${orgId}') return '${exampleOrgId}';
    if (!ids.includes(id)) ids.push(id);
    return '0195a3c2-7d10-7b44-9c1e-5f2a6d80b' + (0x3e7 + 0x95 * ids.indexOf(id)).toString(16);
  };
  const samples = [
    [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, idSample],
    [/\\b[0-9a-f]{64}\\b/g, '${'3b9f07c2'.repeat(8)}'],
    [/\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z/g, '2027-03-02T10:05:12.408Z'],
    [/\\b20\\d\\d-\\d\\d\\b(?!-)/g, '2027-03'],
    [/aln_us_[0-9A-Za-z]{40}/g, 'aln_us_4kTq9ZrB2mXw7LsVd0NfHc6YpGj8EaUo3Ri5SxCt'],
    [/127\\.0\\.0\\.1:\\d+/g, '127.0.0.1:8080'],
    [/localhost:\\d+/g, 'localhost:8083'],
  ];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    for (const [form, sample] of samples) text.data = text.data.replace(form, sample);
  }
})()`;
