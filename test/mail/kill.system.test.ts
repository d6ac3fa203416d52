/** A worker that is killed between the server's 250 and its own record (RFC 1047), and one without Temporal. */
import { expect, it, vi } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { writeInvitation } from '#domain/identity/mail-invitation.ts';
import { spawnWorker } from '#test/child-worker.ts';
import { startMailServer } from '#test/mail-server.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { workerEnvironment } from '#test/worker.ts';

const patient = { timeout: 120_000, interval: 50 };

it('sends a mail again with the same bytes after a kill, also while Temporal is unavailable', {
  timeout: 300_000,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const server = await startMailServer();
  const organizationId = await make.organization();
  const email = 'new.person@example.org';
  const mailKeys = testSealingKeys;
  const { personId, token } = await createEnrolment(owner, { organizationId, email, by: 'orgctl' });
  await owner.change((tx) => writeInvitation(tx, { organizationId, personId, email, token }, mailKeys));
  const environment = workerEnvironment(database, {
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    MAIL_URL: server.url,
    MAIL_FROM: 'Organization console <no-reply@mail.example.org>',
    CONSOLE_URL: 'https://console.example.org',
  });
  const first = spawnWorker(environment);
  server.rules.onMessage = async () => {
    first.process.kill('SIGKILL');
    await first.ended;
    return null;
  };
  await vi.waitFor(() => expect(server.mails).toHaveLength(1), patient);
  await first.ended;
  const states = async () => (await owner.pool.query('select state, attempts from mail')).rows;
  expect(await states()).toEqual([{ state: 'waiting', attempts: 1 }]);

  server.rules.onMessage = async () => null;
  const second = spawnWorker(environment);
  // The admission of the killed worker holds for five minutes.
  await owner.pool.query('update mail set due_at = now()');
  await vi.waitFor(async () => expect(await states()).toEqual([{ state: 'sent', attempts: 2 }]), patient);
  expect(server.mails).toHaveLength(2);
  expect(server.mails[1]?.raw).toBe(server.mails[0]?.raw);
  expect(second.lines.join('\n')).not.toMatch(new RegExp(`${token}|new\\.person`));
  await second.stop();
});
