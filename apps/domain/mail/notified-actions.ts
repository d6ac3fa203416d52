import type { MailKind } from './kinds.ts';

/** Why an action causes no mail. */
const routine = 'It is daily work, and the audit log has it.';
const hooks = 'Receivers get IDs and no names, so a changed webhook exposes no client; the log shows who changed it.';
const machines = 'Systems that concern it get an event, and the receipt and the log have it.';
const own = 'Its member does it in the console, and sees what it does.';
const noise = 'Who tries to sign in would choose who gets mail.';
const later = 'Its use causes a mail.';
const operator = 'The person asked an operator for it, or hears of it when they next sign in.';

/**
 * What people hear by mail of each action of the audit log: the kinds, or a sentence that says why none. Reads
 * with a key (`api.…`) cause none. A new action has a line here.
 */
export const mailsOfActions: Readonly<Record<string, readonly MailKind[] | string>> = {
  'key.create': ['key.create'],
  'key.change': ['key.change'], // of the allowed addresses; a name and a description are routine
  'key.rotate': ['key.rotate'],
  'key.revoke': ['key.revoke'],
  'key.report': ['key.report'],
  'webhook.create': hooks,
  'webhook.change': hooks,
  'webhook.rotate_secret': hooks,
  'webhook.test': routine,
  'webhook.tested': routine,
  'webhook.pause': hooks,
  'webhook.suspend': ['webhook.suspended'],
  'webhook.resume': ['webhook.resume'], // after a mail about the suspension
  'webhook.detach': hooks,
  'webhook.delete': hooks,
  'webhook.redeliver': routine,
  'webhook.redelivered': routine,
  'webhook.cancel_redelivery': routine,
  'webhook.verify': routine,
  'webhook.verified': routine,
  'delivery.redeliver': routine,
  'delivery.retry': routine,
  'delivery.cancel': routine,
  'member.invite': ['invitation', 'owner.add'], // an owner's
  'member.link': ['invitation'],
  'member.join': routine,
  'member.change': routine,
  'member.suspend': ['owner.remove'], // of an owner, as is what follows
  'member.reinstate': ['owner.add'],
  'member.remove': ['owner.remove'],
  'member.role_assign': ['owner.add'],
  'member.role_unassign': ['owner.remove'],
  'role.create': routine,
  'role.change': routine,
  'role.delete': routine,
  'seat.give': machines,
  'seat.end': machines,
  'grant.end': machines,
  'grant.ended': machines,
  'grant.notified': machines,
  'grant.move': machines,
  'sign_in.recover': ['sign_in.recover'],
  'sign_in.confirm': later,
  'sso.set': ['sso.set'],
  'sso.require': ['sso.require', 'sso.accept_passwords'],
  'sso.remove': ['sso.remove'],
  'sign_in.provider': own,
  'sign_in.link_provider': ['sign_in.link_provider'],
  'sign_in.unlink_provider': ['sign_in.unlink_provider'],
  'sign_in.password': own,
  'sign_in.complete': ['sign_in.complete'], // from a new browser
  'sign_in.step_up': own,
  'sign_in.failure': noise,
  'sign_in.change_address': ['sign_in.change_address'],
  'sign_in.free_address': operator,
  'factor.add': ['factor.add'],
  'factor.remove': ['factor.remove'],
  'recovery_codes.renew': ['recovery_codes.renew'],
  'password.change': ['password.change'],
  'session.sign_out': own,
  'session.end': own,
  'session.end_oldest': own,
  'session.end_all': operator,
  'session.end_others': own,
  'organization.change': ['security_contact.change'], // of the security contact; the others are in the log
  'audit_log.download': ['audit_log.download', 'audit_log.evidence'], // by the format
  'audit_log.evidence': 'Its mail went when the download started.',
  import: ['owner.add', 'owner.remove'],
  'import.backfill': ['owner.add', 'owner.remove'],
  'platform.put_organization': routine,
  'platform.put_role': routine,
  'platform.delete_role': routine,
  'platform.put_member': ['owner.add', 'owner.remove'],
  'family.erase': 'The family asked for it, and the certificate proves it.',
  'platform.put_family': machines,
  'platform.start_grant': machines,
  'platform.plan_end': machines,
  'platform.end_grant': machines,
  'platform.move_grant': machines,
  'platform.give_seat': machines,
  'platform.end_seat': machines,
  'platform.put_plan': routine,
  'platform.put_subscription': routine,
  'platform.put_referral_code': routine,
  'platform.put_referral': routine,
  'platform.put_invoice': routine,
  'platform.put_family_days': routine,
  'probe.create': routine,
};
