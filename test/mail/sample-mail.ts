import type { MailKind } from '#domain/mail/kinds.ts';
import type { MailContent } from '../../apps/worker/mail/text-forms.ts';

export const origin = 'https://console.example.org';
const id = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
export const item = { id, number: 3, host: 'hooks.example.org', at: '2026-11-29T20:31:00Z' };

/** A mail of a kind. */
export const createMail = (kind: MailKind, fields: Partial<MailContent> = {}): MailContent => ({
  kind,
  organizationId: id,
  personId: 'usr_1',
  token: 'token',
  createdAt: new Date('2026-11-29T20:31:00Z'),
  facts: {
    organization: 'Harbor',
    registeredName: 'Harbor',
    timeZone: null,
    items: [item],
    anchor: { month: '2026-10', position: 48_213, hash: 'ab'.repeat(32) },
  },
  ...fields,
});
