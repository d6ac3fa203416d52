/** Streams of server-sent events, as the script of an open page uses them. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { cookieName } from '../../apps/console/web/cookies.ts';
import { type ConsoleInstallation, type Enrolled, setupConsole } from './setup.ts';
import { insertWebhook } from './webhook-stories.ts';

const waiting = { timeout: 30_000, interval: 50 };

async function setup(settings: Record<string, string> = {}) {
  const t = await setupConsole(settings);
  const ada = await t.enrol();
  const webhook = await insertWebhook(t, ada);
  const path = `/o/${ada.orgId}/webhooks/${webhook.id}/deliveries`;
  const addDelivery = () => t.make.delivery({ webhook, nextAttemptAt: new Date(Date.now() + 3_600_000) });
  await addDelivery();
  return { ...t, ada, webhook, path, addDelivery };
}

/** Opens the stream of a page as `EventSource` does. `text` is the data received so far. */
async function openStream(t: ConsoleInstallation, person: Enrolled, path: string) {
  const page = await t.http(person).get(path);
  const version = /data-version="([^"]+)"/.exec(page.text)?.[1] ?? '';
  const ending = new AbortController();
  onTestFinished(() => ending.abort());
  const response = await fetch(`${t.origin}${path}?version=${version}`, {
    headers: { accept: 'text/event-stream', cookie: `${cookieName('session', t.origin)}=${person.sessionToken}` },
    signal: ending.signal,
    redirect: 'manual',
  });
  const stream = {
    version,
    response,
    text: '',
    hasEnded: false,
    close: () => ending.abort(),
    received: (pattern: RegExp) => vi.waitFor(() => expect(stream.text).toMatch(pattern), waiting),
    ended: () => vi.waitFor(() => expect(stream.hasEnded).toBe(true), waiting),
  };
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) stream.text += decoder.decode(bytes, { stream: true });
  };
  void read()
    .catch(() => {})
    .finally(() => {
      stream.hasEnded = true;
    });
  return stream;
}

const countStreams = async ({ console: { metricsUrl } }: ConsoleInstallation) => {
  const page = await (await fetch(`${metricsUrl}/metrics`)).text();
  return Number(/^org_console_live_streams (\d+)$/m.exec(page)?.[1]);
};

it('a change reaches every open page that shows it, as a version without content', async () => {
  const t = await setup();
  const bo = await t.enrol({ orgId: t.ada.orgId, roleKey: 'owner' });
  const streams = [await openStream(t, t.ada, t.path), await openStream(t, bo, t.path)];
  for (const { response, received } of streams) {
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    await received(/^:\n\n/);
  }

  await t.addDelivery();

  for (const stream of streams) {
    await stream.received(/event: changed\ndata: [\w-]{16}\n\n$/);
    expect(stream.text).not.toContain(stream.version);
  }
  const { text } = await t.http(t.ada).get(t.path);
  const version = /data-version="([^"]+)"/.exec(text)?.[1] ?? '';
  for (const stream of streams) expect(stream.text).toContain(`data: ${version}\n`);
});

it('a stream ends without a message when its session ended or its person lost the permission', async () => {
  const t = await setup();
  const bo = await t.enrol({ orgId: t.ada.orgId, roleKey: 'owner' });
  const ada = await openStream(t, t.ada, t.path);
  const lost = await openStream(t, bo, t.path);
  const cy = await t.enrol({ orgId: t.ada.orgId, roleKey: 'owner' });
  const kept = await openStream(t, cy, t.path);
  await t.owner.pool.query('delete from console_session where person_id = $1', [t.ada.personId]);
  await t.owner.pool.query('delete from membership_role where person_id = $1', [bo.personId]);

  await t.addDelivery();

  await kept.received(/event: changed/);
  for (const stream of [ada, lost]) {
    await stream.ended();
    expect(stream.text).toContain('event: end\n');
    expect(stream.text).not.toContain('changed');
  }
  expect(kept.hasEnded).toBe(false);
});

it('a member who is suspended or removed receives no further message', async () => {
  const t = await setup();
  const watched = [];
  for (const change of ['suspend', 'remove']) {
    const person = await t.enrol({ orgId: t.ada.orgId, roleKey: 'owner' });
    watched.push({ person, change, stream: await openStream(t, person, t.path) });
  }
  const kept = await openStream(t, t.ada, t.path);
  for (const { person, change } of watched) {
    const path = `/o/${t.ada.orgId}/members/person/${person.personId}/${change}`;
    expect(await t.http(t.ada).submit(path, path)).toMatchObject({ status: 303 });
  }

  await t.addDelivery();

  await kept.received(/event: changed/);
  for (const { stream } of watched) {
    await stream.ended();
    expect(stream.text).not.toContain('changed');
  }
});

it('a person may have six streams; another is refused until one is closed', async () => {
  const t = await setup();
  const streams = [];
  for (let count = 0; count < 6; count += 1) streams.push(await openStream(t, t.ada, t.path));
  expect(await countStreams(t)).toBe(6);

  const refused = await openStream(t, t.ada, t.path);
  expect(refused.response.status).toBe(429);
  expect(refused.response.headers.get('retry-after')).toBe('30');
  const bo = await t.enrol({ orgId: t.ada.orgId, roleKey: 'owner' });
  expect((await openStream(t, bo, t.path)).response.status).toBe(200);

  streams[0]?.close();
  await vi.waitFor(async () => expect(await countStreams(t)).toBe(6), waiting);
  expect((await openStream(t, t.ada, t.path)).response.status).toBe(200);
});

it('streams above the number of a pod are refused with 503, and a closed one makes room', async () => {
  const t = await setup({ MAX_STREAMS: '2' });
  const bo = await t.enrol({ orgId: t.ada.orgId, roleKey: 'owner' });
  const first = await openStream(t, t.ada, t.path);
  expect((await openStream(t, bo, t.path)).response.status).toBe(200);

  const refused = await openStream(t, t.ada, t.path);
  expect(refused.response.status).toBe(503);
  expect(refused.response.headers.get('retry-after')).toBe('30');
  await refused.ended();
  expect(refused.text).toBe('');

  first.close();
  await vi.waitFor(async () => expect(await countStreams(t)).toBe(1), waiting);
  expect((await openStream(t, t.ada, t.path)).response.status).toBe(200);
});

it('a stream does not extend its session', async () => {
  const t = await setup();
  t.pass(20 * 60_000);
  const stream = await openStream(t, t.ada, t.path);
  await stream.received(/^:\n\n/);
  t.pass(31 * 60_000);
  await stream.ended();
  expect((await t.http(t.ada).get(t.path)).to).toContain('/sign-in');
});

it('a console that stops ends its streams at once', async () => {
  const t = await setup();
  const stream = await openStream(t, t.ada, t.path);
  const stopped = t.console.stop();
  await stream.received(/event: end/);
  await stopped;
  await stream.ended();
});

it('a stream is not opened without a session, for another organization, or for a page without one', async () => {
  const t = await setup();
  const other = await t.enrol();
  const statusOf = async (person: Partial<Enrolled>, path: string) =>
    (await t.http(person as Enrolled).get(path, { headers: { accept: 'text/event-stream' } })).status;
  expect(await statusOf({ sessionToken: 'none' }, t.path)).toBe(401);
  expect(await statusOf(other, t.path)).toBe(404);
  const page = await t.http(t.ada).get(`/o/${t.ada.orgId}/keys`, { headers: { accept: 'text/event-stream' } });
  expect(page.headers.get('content-type')).toContain('text/html');
});
