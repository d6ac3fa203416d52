/** What people get by mail. Who gets which, and when it is still true, is in the migration of `mail`. */
export const mailKinds = [
  'invitation',
  'password.change',
  'factor.add',
  'factor.remove',
  'recovery_codes.renew',
  'sign_in.recover',
  'sign_in.complete',
  'sign_in.change_address',
  'sign_in.link_provider',
  'sign_in.unlink_provider',
  'key.create',
  'key.change',
  'key.rotate',
  'key.revoke',
  'key.report',
  'key.expiring',
  'webhook.failing',
  'webhook.suspended',
  'webhook.resume',
  'audit_log.download',
  'audit_log.evidence',
  'audit_log.anchor',
  'sso.set',
  'sso.require',
  'sso.accept_passwords',
  'sso.remove',
  'owner.add',
  'owner.remove',
  'security_contact.change',
] as const;
export type MailKind = (typeof mailKinds)[number];

/** What a member may turn off, with the permission of those who get it. */
export const optionalKinds = {
  'webhook.failing': 'org.webhooks.manage',
  'webhook.suspended': 'org.webhooks.manage',
  'key.expiring': 'org.keys.manage',
} as const;
export type OptionalKind = keyof typeof optionalKinds;

/** Returns what a member turns off to get no mail of a kind; null when they cannot. */
export function findOptional(kind: MailKind): OptionalKind | null {
  if (kind === 'webhook.resume') return 'webhook.suspended';
  return kind in optionalKinds ? (kind as OptionalKind) : null;
}
