/** The texts of all mails: their form, names and times. */
import { describe, expect, it } from 'vitest';
import { type MailKind, mailKinds } from '#domain/mail/kinds.ts';
import { renderHtml, renderText } from '../../apps/worker/mail/render.ts';
import { formatTime } from '../../apps/worker/mail/text-forms.ts';
import { composeText } from '../../apps/worker/mail/texts.ts';
import { createMail, item, origin } from './sample-mail.ts';

describe.each(mailKinds)('a mail %s', (kind) => {
  it.each([
    ['a person', 'usr_1'],
    ['the security contact', null],
  ])('to %s has short sentences with one fact each, and one thing to do', (_, personId) => {
    const mail = createMail(kind, { personId });
    const several = { ...mail, facts: { ...mail.facts, items: [item, item] } };
    for (const text of [composeText(mail, origin), composeText(several, origin)]) {
      expect(text.subject).toMatch(/^[A-Z2][^.!?]{8,90}$/);
      for (const sentence of text.sentences) expect(sentence).toMatch(/^[A-Z][^!?]*\.$/);
      // A quoted command has periods too.
      for (const sentence of text.sentences) expect(sentence.replace(/“.*”/, '').slice(0, -1)).not.toMatch(/\. /);
      for (const sentence of [...text.sentences, ...text.advice.split(/(?<=\.) /)])
        expect(sentence.split(' ').length).toBeLessThanOrEqual(26);
      expect(text.action.url).toMatch(/^https:\/\/console\.example\.org\//);
      expect(text.reason).toMatch(/^You get this email because .*\.$/);
      const all = renderText(text, null);
      expect(all).not.toMatch(/please|sorry|undefined|null|NaN|Invalid/i);
      expect(renderHtml(text, null)).not.toMatch(/undefined|NaN/);
    }
  });
});

it('says to the security contact why it gets a mail, and to a member why they do', () => {
  const reason = (kind: MailKind, personId: string | null) =>
    composeText(createMail(kind, { personId }), origin).reason;
  for (const kind of ['key.create', 'owner.add', 'sso.remove', 'audit_log.anchor'] as const) {
    expect(reason(kind, null)).toBe('You get this email because this address is the security contact of Harbor.');
    expect(reason(kind, 'usr_1')).toMatch(/because you (are an owner|can manage the API keys) of Harbor/);
  }
  expect(reason('security_contact.change', null)).toContain('is or was the security contact');
});

it('has times in the organization’s zone, with its name', () => {
  const at = '2026-11-29T20:31:00Z';
  // No line breaks before AM or PM.
  expect(formatTime(at)).toBe('November 29, 2026 at 8:31\u00a0PM UTC');
  expect(formatTime(at, 'America/New_York')).toBe('November 29, 2026 at 3:31\u00a0PM (America/New York)');
  // One that this release does not know is no reason to send nothing.
  expect(formatTime(at, 'Mars/Olympus')).toMatch(/UTC$/);
  const { facts } = createMail('key.expiring');
  const text = composeText(createMail('key.expiring', { facts: { ...facts, timeZone: 'Asia/Tokyo' } }), origin);
  expect(text.facts.at(-1)?.[1]).toMatch(/^Expires November 30, 2026 at 5:31.AM \(Asia\/Tokyo\)$/);
});

it('names the organization to members as its owners chose, and to others as it is registered', () => {
  const facts = { ...createMail('invitation').facts, organization: 'Harbor', registeredName: 'Müller & Söhne' };
  const read = (kind: MailKind, personId: string | null) =>
    renderText(composeText(createMail(kind, { facts, personId }), origin), null);
  for (const text of [read('invitation', 'usr_1'), read('key.create', null)]) {
    expect(text).toContain('Müller & Söhne');
    expect(text).not.toContain('Harbor');
  }
  expect(read('key.create', 'usr_1')).toContain('An API key of Harbor was created');
  expect(read('key.create', 'usr_1')).not.toContain('Müller');
});
