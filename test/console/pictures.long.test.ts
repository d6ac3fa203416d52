/**
 * The pictures that README shows, of real pages with data of the tests. Values that differ between
 * runs (ids, keys, secrets, ports, times) are replaced by fixed ones before the picture is taken,
 * so a picture changes only when its page does. `npm run tool -- pictures` writes them where README
 * finds them.
 */
import type { Page } from 'playwright-core';
import { afterAll, expect, it } from 'vitest';
import { closeBrowser, openVisit, picture, ready } from './browser.ts';
import { type ConsoleInstallation, type Enrolled, goodPassword, setupConsole } from './setup.ts';
import { fillAttempts, insertWebhook } from './webhook-stories.ts';

/** Maximum size of a picture in README, in bytes. */
const pictureMaxBytes = 150_000;
const wide = 900;
const phone = 390;

afterAll(closeBrowser);

interface Shown {
  name: string;
  /** In CSS pixels. */
  size: { width: number; height: number };
  take: (page: Page, t: ConsoleInstallation, ada: Enrolled) => Promise<void>;
}

const pictures: readonly Shown[] = [
  {
    name: 'second-factor',
    size: { width: wide, height: 500 },
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
    size: { width: wide, height: 650 },
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
];

it('README’s pictures are small, and the same in every run', { timeout: 240_000 }, async () => {
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
  const t = await setupConsole({ TEMPORAL_ADDRESS: '127.0.0.1:1' });
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const { page, context } = await openVisit(t.origin, { sessionToken: ada.sessionToken });
  await page.setViewportSize(shown.size);
  await shown.take(page, t, ada);
  await ready(page);
  await page.evaluate(steady);
  const taken = await picture(page, shown.name, { fullPage: false });
  await context.close();
  return taken;
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

/**
 * Replaces in the page every time by one within the same minute, and every id, key, secret, email
 * address and port by a sample. Different ids stay different.
 */
const steady = `(() => {
  const times = [...document.querySelectorAll('time')];
  const first = Math.min(...times.map((time) => Date.parse(time.dateTime)));
  for (const time of times) {
    const moment = new Date(Date.UTC(2027, 2, 2, 10, 5, 12) + Date.parse(time.dateTime) - first);
    const timeStyle = 'zoned' in time.dataset ? 'long' : 'exact' in time.dataset ? 'medium' : 'short';
    time.textContent = moment.toLocaleString('en-US', { dateStyle: 'medium', timeStyle, timeZone: 'UTC' });
    time.removeAttribute('datetime');
  }
  const ids = [];
  const idSample = (id) => {
    if (!ids.includes(id)) ids.push(id);
    return '0195a3c2-7d10-7b44-9c1e-5f2a6d80b' + (0x3e7 + 0x95 * ids.indexOf(id)).toString(16);
  };
  const samples = [
    [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, idSample],
    [/\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z/g, '2027-03-02T10:05:12.408Z'],
    [/aln_us_[0-9A-Za-z]{40}/g, 'aln_us_4kTq9ZrB2mXw7LsVd0NfHc6YpGj8EaUo3Ri5SxCt'],
    [/127\\.0\\.0\\.1:\\d+/g, '127.0.0.1:8080'],
  ];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode;
    for (const [form, sample] of samples) text.data = text.data.replace(form, sample);
  }
})()`;
