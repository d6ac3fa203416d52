/** The inbox of `npm start`: the links of a mail lead out of its frame. */
import { createTransport } from 'nodemailer';
import { expect, it } from 'vitest';
import { startInbox } from '../../apps/dev/inbox.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';

it('shows a mail in a frame whose links open in a window without its limits', async () => {
  const { mailUrl, inbox } = await startInbox({ smtpPort: await getFreePort(), pagePort: await getFreePort() });
  const smtp = createTransport(mailUrl);
  const page = '<!doctype html><html><head><title>x</title></head><body><a href="https://console.example.org">x</a>';
  await smtp.sendMail({ from: 'a@example.org', to: 'b@example.org', subject: 'Invitation', text: 'x', html: page });
  smtp.close();
  const list = await (await fetch(inbox)).text();
  expect(list).toContain('<a href="/1">Invitation</a>');
  const limits = 'allow-popups allow-popups-to-escape-sandbox';
  expect(await (await fetch(`${inbox}1`)).text()).toContain(`sandbox="${limits}"`);
  const mail = await fetch(`${inbox}1/html`);
  expect(mail.headers.get('content-security-policy')).toMatch(new RegExp(`sandbox ${limits}$`));
  // The console opens in no frame.
  expect(await mail.text()).toContain('<head><base target="_blank">');
});
