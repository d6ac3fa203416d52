/** The chart of a webhook's health in its five ranges. */
import { expect, it } from 'vitest';
import { purgeDeliveriesSql } from '#domain/webhooks/retention.ts';
import { setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const dayMs = 86_400_000;

async function setup() {
  const t = await setupConsole();
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  const settled = (daysAgo: number) =>
    t.make.delivery({
      webhook,
      state: 'delivered',
      createdAt: new Date(Date.now() - daysAgo * dayMs),
      settledAt: new Date(Date.now() - daysAgo * dayMs),
      attempts: [{ status: 200, cause: 'accepted' }],
    });
  const section = async (range: string) => {
    const { text } = await t.http(ada).get(`/o/${ada.orgId}/webhooks/${webhook.id}?health=${range}`);
    return text.slice(text.indexOf('id="health"'), text.indexOf('</section>', text.indexOf('id="health"')));
  };
  return { ...t, settled, section };
}

it('health has five ranges from one hour to 90 days, each with its bars, a sentence and tooltips', async () => {
  const t = await setup();
  for (const daysAgo of [0.01, 0.5, 3, 20, 60]) await t.settled(daysAgo);
  for (const [range, bars, each, delivered, tooltip] of [
    ['1h', 12, '5 minutes', 1, /<title><time [^>]*>\d{4}-\d\d-\d\d \d\d:\d[05]:00 UTC<\/time>: 1 delivered/],
    ['24h', 24, 'hour', 2, /<title><time [^>]*>\d{4}-\d\d-\d\d \d\d:00:00 UTC<\/time>: 1 delivered/],
    ['7d', 28, '6 hours', 3, /<title><time [^>]*>\d{4}-\d\d-\d\d (00|06|12|18):00:00 UTC<\/time>: 1 delivered/],
    // A bar of a day is one of UTC, and says so.
    ['30d', 30, 'day', 4, /<title>[A-Z][a-z]{2} \d\d?, \d{4} UTC: 1 delivered/],
    ['90d', 90, 'day', 5, /<title>[A-Z][a-z]{2} \d\d?, \d{4} UTC: 1 delivered/],
  ] as const) {
    const section = await t.section(range);
    expect([range, section.match(/<g class="bar">/g)?.length]).toEqual([range, bars]);
    expect(section).toContain(`Events per ${each}, by status`);
    expect(section).toContain(`${delivered} delivered on first attempt.`);
    expect(section).toMatch(tooltip);
    expect(section.match(/aria-current="true"/g)).toHaveLength(1);
    expect(section.match(/<nav class="spans"[\s\S]*?<\/nav>/)?.[0].match(/<a /g)).toHaveLength(5);
  }
  expect(await t.section('x')).toContain('Events per hour, by status');
});

it('health says which bars are incomplete when deliveries are kept for less than the range', async () => {
  const t = await setup();
  await t.settled(0.01);
  expect(await t.section('90d')).not.toContain('Deliveries are deleted');
  await t.owner.pool.query(purgeDeliveriesSql, [45, 10]);
  expect(await t.section('90d')).toContain('Deliveries are deleted 45 days after they finish.');
  expect(await t.section('30d')).not.toContain('Deliveries are deleted');
});
