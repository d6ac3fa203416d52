import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { startChildWorker } from '#test/child-worker.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { workerEnvironment } from '#test/worker.ts';

const timeout = 120_000;
const patient = { timeout: 60_000, interval: 50 };

/**
 * A first attempt is made inside the workflow's first task. The server gives the task to another
 * worker when the first one does not finish it.
 */
describe('a first attempt in progress', () => {
  it('is completed and recorded once by a worker that stops', { timeout }, async () => {
    const { receiver, settings, rows, workflow, makeEvent, isDelivered } = await arrange();
    const leaving = await startChildWorker(settings);
    await makeEvent();
    const exit = leaving.stop();
    const staying = await startChildWorker(settings);
    expect(await rows('select finished_at from delivery_attempt')).toEqual([{ finished_at: null }]);
    receiver.respondToAll(200);

    expect(await exit).toBe(0);
    await isDelivered();
    await (await workflow()).result();
    expect(receiver.received).toHaveLength(1);
    expect(await rows('select number, cause from delivery_attempt')).toEqual([{ number: 1, cause: 'accepted' }]);
    expect(await staying.stop()).toBe(0);
  });

  it('counts when it fails while its worker stops, and another worker continues with the schedule', {
    timeout,
  }, async () => {
    const { receiver, settings, rows, makeEvent, isDelivered } = await arrange();
    const leaving = await startChildWorker(settings);
    await makeEvent();
    const exit = leaving.stop();
    await startChildWorker(settings);
    receiver.respond = (response) => void response.writeHead(200).end();
    receiver.respondToAll(503);

    expect(await exit).toBe(0);
    await isDelivered();
    expect(await rows('select number, status from delivery_attempt order by number')).toEqual([
      { number: 1, status: 503 },
      { number: 2, status: 200 },
    ]);
    expect(receiver.received).toHaveLength(2);
  });

  it('is recorded as lost when its worker stops, and the next attempt has its own row', { timeout }, async () => {
    const { receiver, settings, rows, makeEvent, isDelivered } = await arrange();
    const dying = await startChildWorker(settings);
    await makeEvent();
    dying.process.kill('SIGKILL');
    receiver.respond = (response) => void response.writeHead(200).end();
    await startChildWorker(settings);
    await rows('update slot set until = now()'); // as 25 seconds do

    await isDelivered();
    expect(await rows('select number, cause from delivery_attempt order by number')).toEqual([
      { number: 1, cause: 'lost' },
      { number: 2, cause: 'accepted' },
    ]);
    const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
  });

  // The outcome is recorded with the status line, not with the end of the body.
  it('that was answered is recorded and posted once, also when its process is killed in the next second', {
    timeout,
  }, async () => {
    const { receiver, settings, rows, workflow, makeEvent, isDelivered } = await arrange();
    let answered: ServerResponse | undefined;
    receiver.respond = (response) => {
      answered = response;
      response.writeHead(200).flushHeaders();
      setTimeout(() => response.write('the beginning of a body'), 50);
    };
    const dying = await startChildWorker(settings);
    await makeEvent();
    await isDelivered(5);
    dying.process.kill('SIGKILL');
    await dying.ended;
    expect(answered?.writableEnded).toBe(false);
    // What it read of the body is recorded after a second: it was killed before.
    const attempted = [{ number: 1, cause: 'accepted', kept_bytes: 0 }];
    expect(await rows('select number, cause, kept_bytes from delivery_attempt')).toEqual(attempted);

    await startChildWorker(settings);
    await (await workflow()).result(); // its first task is given to the other worker
    expect(await rows('select number, cause, kept_bytes from delivery_attempt')).toEqual(attempted);
    expect(receiver.received).toHaveLength(1);
  });

  it('that kills its process is made at most three times more than the schedule has attempts', {
    timeout: 180_000,
  }, async () => {
    const { receiver, settings, rows, makeEvent } = await arrange();
    const environment = { ...settings, DELIVERY_SCHEDULE: '200ms' };
    let worker = await startChildWorker(environment);
    await makeEvent();
    for (let posts = 1; posts <= 5; posts += 1) {
      await vi.waitFor(() => expect(receiver.received).toHaveLength(posts), patient);
      worker.process.kill('SIGKILL');
      await worker.ended;
      await rows('update slot set until = now()'); // as 25 seconds do
      worker = await startChildWorker(environment);
    }
    await vi.waitFor(
      async () =>
        expect(await rows('select state, attempts from delivery')).toEqual([{ state: 'exhausted', attempts: 5 }]),
      patient,
    );
    const attempts = await rows('select cause, ends_schedule from delivery_attempt order by number');
    expect(attempts).toEqual(
      [false, true, true, true, true].map((ends_schedule) => ({ cause: 'lost', ends_schedule })),
    );
    expect(receiver.received).toHaveLength(5);
  });

  it('may take longer than a workflow task may', { timeout }, async () => {
    const { receiver, settings, rows, makeEvent, isDelivered } = await arrange();
    await startChildWorker(settings);
    receiver.respond = (response) => void setTimeout(() => response.writeHead(200).end(), 9_500);
    await makeEvent();
    await isDelivered();
    expect(await rows('select number, cause from delivery_attempt')).toEqual([{ number: 1, cause: 'accepted' }]);
    expect(receiver.received).toHaveLength(1);
  });
});

/**
 * A webhook whose receiver delays its responses until `respondToAll`. `makeEvent` resolves when
 * the post has arrived.
 */
async function arrange() {
  const { database, owner, make } = await setupDatabase();
  const server = await startReceiver();
  const held: ServerResponse[] = [];
  server.respond = (response) => void held.push(response);
  const receiver = Object.assign(server, {
    respondToAll: (status: number) => {
      for (const response of held.splice(0)) response.writeHead(status).end();
    },
  });
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const rows = async (query: string) => (await owner.pool.query(query)).rows;
  return {
    receiver,
    rows,
    settings: workerEnvironment(database, { DELIVERY_SCHEDULE: '200ms,200ms,1h' }),
    async makeEvent() {
      await make.grant({ professional });
      await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
    },
    isDelivered: (interval = patient.interval) =>
      vi.waitFor(async () => expect(await rows('select state from delivery')).toEqual([{ state: 'delivered' }]), {
        ...patient,
        interval,
      }),
    async workflow() {
      const [event] = await rows('select id from event');
      return (await openTestTemporal()).workflow.getHandle(`delivery/${professional.orgId}/${webhook.id}/${event?.id}`);
    },
  };
}
