import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { readConfig } from '../../apps/receiver/config.ts';
import { Failing } from '../../apps/receiver/failing.ts';
import { ReceivedEvents } from '../../apps/receiver/received.ts';
import { setupReceiver } from './setup.ts';

describe('the sample receiver', () => {
  it('accepts a delivery that verifies, shows it, and counts a repetition as a duplicate', async () => {
    const { deliver, deliveries, lines } = await setupReceiver();
    const id = randomUUID();

    expect((await deliver({ id })).status).toBe(204);
    expect((await deliver({ id })).status).toBe(204);
    expect((await deliver()).status).toBe(204);

    const [other, first] = await deliveries();
    expect(other).toMatchObject({ times: 1, duplicates: 0 });
    expect(first).toMatchObject({
      endpoint: 'harbor',
      eventId: id,
      type: 'client.started',
      sequence: 7,
      times: 2,
      duplicates: 1,
      verified: true,
      problem: null,
      response: 204,
    });
    expect(lines.filter((line) => line.includes(id)).map((line) => JSON.parse(line).duplicate)).toEqual([false, true]);
  });

  it('marks an event late when a later one of its seat or grant was accepted before it', async () => {
    const { deliver, deliveries, post, secret } = await setupReceiver();
    await post('/secrets', { elm: [secret] });
    const [grantId, seatId] = [randomUUID(), randomUUID()];
    const at = (millisecond: number) => `2026-01-01T00:00:00.00${millisecond}Z`;
    const ids = ['1', '2', '3', '4', '5', '6', '7'].map((first) => `${first}${randomUUID().slice(1)}`);
    const arrivals = [
      { sequence: 10, event: { createdAt: at(2), data: { grantId } } },
      { sequence: 11, event: { createdAt: at(1), data: { grantId } } }, // late
      { sequence: 9, event: { createdAt: at(1), data: { grantId, seatId } } },
      { sequence: 8, event: { createdAt: at(2), data: { grantId } } }, // late within the millisecond
      { sequence: 1, event: { createdAt: at(2), data: { grantId } }, endpoint: 'elm' },
      { sequence: 12, event: { createdAt: at(1), data: { grantId }, test: true as const } },
      { sequence: 13, event: { createdAt: at(2), data: { grantId } }, secrets: [generateSecret()] },
    ];
    for (const [index, each] of arrivals.entries()) await deliver({ id: ids[index] ?? '', ...each });
    await deliver({ id: ids[1] ?? '', ...arrivals[1] });

    const late = (await deliveries()).filter((event) => event.late).map(({ eventId }) => eventId);
    expect(late.sort()).toEqual([ids[1], ids[3]]);
  });

  it.each([
    ['made with another secret', { secrets: [generateSecret()] }],
    ['signed ten minutes ago', { ageSeconds: 600 }],
    ['whose body was changed', { body: '{"id":"another"}' }],
  ])('rejects a delivery %s, and shows the reason', async (_what, options) => {
    const { deliver, deliveries } = await setupReceiver();
    expect((await deliver(options)).status).toBe(400);
    expect(await deliveries()).toMatchObject([{ verified: false, response: 400, problem: expect.any(String) }]);
  });

  it('accepts more endpoints and rotated secrets from this machine as JSON, and verifies with each', async () => {
    const { post, deliver, deliveries, secret } = await setupReceiver();
    const newer = generateSecret();
    const unknown = await deliver({ endpoint: 'other' });
    expect([unknown.status, await unknown.json()]).toMatchObject([401, { error: 'no_secret' }]);
    expect(await deliveries()).toMatchObject([
      {
        endpoint: 'other',
        verified: false,
        response: 401,
        problem: expect.stringContaining('Enter the webhook’s secret'),
      },
    ]);

    expect((await post('/secrets', { harbor: [newer, secret], other: [secret] })).status).toBe(204);
    expect((await deliver({ endpoint: 'other' })).status).toBe(204);
    expect((await deliver({ secrets: [newer, secret] })).status).toBe(204);
    expect((await deliver({ secrets: [newer] })).status).toBe(204);

    expect((await post('/secrets', { harbor: ['whsec_short'] })).status).toBe(400);
    expect((await post('/secrets', { harbor: [] }, { 'content-type': 'text/plain' })).status).toBe(403);
  });

  it('fails for a while on request, and a repetition of what it never accepted is no duplicate', async () => {
    const { post, deliver, deliveries } = await setupReceiver();
    const id = randomUUID();
    expect(await (await post('/fail?for=30s&status=503')).json()).toMatchObject({ forMs: 30_000 });
    expect((await deliver({ id })).status).toBe(503);

    await post('/fail?for=30s&how=reset');
    await expect(deliver({ id })).rejects.toThrow();

    await post('/fail?for=0s');
    expect((await deliver({ id })).status).toBe(204);
    expect(await deliveries()).toMatchObject([{ eventId: id, times: 3, duplicates: 0 }]);
    expect((await post('/fail?for=2d')).status).toBe(400);
    expect((await post('/fail?for=1s&status=204')).status).toBe(400);
  });

  it('hangs on request, and can still be stopped', async () => {
    const { post, deliver, deliveries, receiver } = await setupReceiver();
    await post('/fail?for=30s&how=hang');
    const hanging = deliver().catch(() => 'cut off');
    await expect.poll(deliveries).toMatchObject([{ response: 'hang' }]);

    await receiver.stop();

    expect(await hanging).toBe('cut off');
  });

  it('has a page that loads nothing from other origins, and shows no secret', async () => {
    const { receiver, deliver, secret, lines } = await setupReceiver();
    await deliver();
    const shown = await Promise.all(
      ['/', '/page.js', '/page.css', '/deliveries'].map(async (at) => {
        const response = await fetch(receiver.url + at);
        expect(response.status, at).toBe(200);
        if (at === '/') expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
        return response.text();
      }),
    );
    expect([...shown, ...lines].join('\n')).not.toContain(secret.slice('whsec_'.length));
    expect(shown[0]).not.toMatch(/https?:\/\//);
    expect((await fetch(`${receiver.url}/elsewhere`)).status).toBe(404);
  });

  it('survives interrupted requests and endless bodies', async () => {
    const { receiver, deliver, post } = await setupReceiver();
    const { port } = new URL(receiver.url);
    const socket = connect(Number(port), '127.0.0.1');
    await new Promise((resolve) =>
      socket.write('POST /hooks/harbor HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{', resolve),
    );
    socket.destroy();
    expect((await post('/hooks/harbor', 'x'.repeat(2 * 1024 * 1024))).status).toBe(413);
    expect((await deliver()).status).toBe(204);
  });
});

it('the sample receiver reads its secrets from a file, and rejects wrong settings without repeating them', () => {
  const secret = generateSecret();
  const file = path.join(temporaryFolder(), 'secrets.json');
  writeFileSync(file, JSON.stringify({ harbor: [secret] }));
  expect(readConfig({ RECEIVER_SECRETS_FILE: file }).secrets).toEqual({ harbor: [secret] });
  const wrong = () => readConfig({ RECEIVER_SECRETS: '{"harbor": ["whsec_secret-value"]}', PORT: 'x' });
  expect(wrong).toThrow(/RECEIVER_SECRETS: must be JSON/);
  expect(wrong).not.toThrow(/secret-value/);
});

it('the sample receiver keeps the last 200 events', () => {
  const received = new ReceivedEvents();
  const arrival = (eventId: string) => ({
    endpoint: 'e',
    eventId,
    type: 'client.started',
    sequence: 1,
    verified: true,
    problem: null,
    response: 204,
    occurrence: null,
  });
  for (let made = 0; made < 200; made += 1) received.record(arrival(`${made}`), new Date());
  received.record(arrival('0'), new Date()); // 2 came again, so 1 is now the oldest
  received.record(arrival('new'), new Date());

  const ids = received.list().map(({ eventId }) => eventId);
  expect(ids).toHaveLength(200);
  expect(ids.slice(0, 2)).toEqual(['new', '0']);
  expect(ids).not.toContain('1');
});

it('the sample receiver stops failing when the requested time has passed', () => {
  let now = 0;
  const failing = new Failing(() => now);
  failing.set(new URLSearchParams('for=30s&status=500'));
  now = 29_999;
  expect(failing.current()).toEqual({ how: 'status', status: 500 });
  now = 30_000;
  expect(failing.current()).toBeNull();
});
