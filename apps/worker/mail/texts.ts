import { enrolmentLink } from '#domain/identity/token.ts';
import { createForms, formatMonth, type MailContent, type MailText, nameKey } from './text-forms.ts';

const revokeUnmeant = 'If no member of your organization meant this, revoke the key, and check the audit log.';

/** Returns the text of a mail. The same mail has the same text each time. */
export function composeText(mail: MailContent, origin: string): MailText {
  const { kind, personId, facts, token, createdAt } = mail;
  const { items, anchor } = facts;
  const forms = createForms(mail, origin);
  const { organization, choose, format, within, open, because, ofPerson, ofKey, ofWebhooks, ofOwner } = forms;

  switch (kind) {
    case 'invitation':
      return {
        subject: `Invitation to join ${organization}`,
        sentences: [
          `A member of ${organization} invited you to its console, where members manage access to its data.`,
          'Open the link to set up your sign-in, or to sign in if you have one.',
          'It works once.',
        ],
        facts: [
          ['Organization', organization],
          ['Link expires', format(facts.expiresAt ?? createdAt)],
        ],
        action: { label: 'Accept invitation', url: enrolmentLink(origin, token ?? '') },
        advice: 'If you did not expect this, ignore it. Do not forward it: anyone with the link can join as you.',
        reason: `You get this email because a member of ${organization} entered your address.`,
      };
    case 'password.change':
      return ofPerson(
        'Your password was changed',
        'The password of your sign-in was changed.',
        'Your other sessions ended.',
      );
    case 'factor.add':
      return ofPerson('A second factor was added', 'A second factor was added to your sign-in.');
    case 'factor.remove':
      return ofPerson('A second factor was removed', 'A second factor was removed from your sign-in.');
    case 'recovery_codes.renew':
      return ofPerson('New recovery codes were created', 'New recovery codes replaced your earlier ones.');
    case 'sign_in.recover':
      return ofPerson(
        'Your sign-in was recovered',
        'A recovery link of an operator was used.',
        'It replaced your password and second factors.',
      );
    case 'sign_in.complete':
      return ofPerson('Sign-in from a new browser', 'You signed in from a browser that you had not used before.');
    case 'sign_in.change_address':
      return {
        ...ofPerson('Your sign-in address was changed', 'An operator changed the email address of your sign-in.'),
        advice: 'If you asked for this, there is nothing to do. If not, contact support now.',
        reason: 'You get this email because this is the old or the new address of your sign-in.',
      };
    case 'sign_in.link_provider':
      return {
        ...ofPerson(
          'An account was linked to your sign-in',
          'An account at an organization’s sign-in provider was linked to your sign-in.',
          'It replaces your password when you sign in there, and your second factor is still needed.',
        ),
        advice:
          'If this was you, there is nothing to do. If not, link your own account, which replaces this one, and ' +
          'change your password. Tell an owner of the organization.',
      };
    case 'sign_in.unlink_provider':
      return ofPerson(
        'An account was unlinked from your sign-in',
        'Your account at an organization’s sign-in provider was unlinked from your sign-in.',
        'It no longer signs you in, and the sessions that began with it ended.',
      );
    case 'key.create':
      return ofKey(
        `An API key of ${organization} was created`,
        ['A new API key can read your organization’s data.'],
        revokeUnmeant,
      );
    case 'key.change':
      return ofKey(
        `The allowed IP addresses of an API key of ${organization} were changed`,
        ['The addresses that the key works from changed.', 'The key’s page lists them.'],
        revokeUnmeant,
      );
    case 'key.rotate':
      return ofKey(
        `An API key of ${organization} was rotated`,
        ['A new API key replaces an earlier one.', 'Put the new key into use before the earlier one ends.'],
        revokeUnmeant,
      );
    case 'key.revoke':
      return ofKey(
        `An API key of ${organization} was revoked`,
        ['Requests with this key are rejected from now on.'],
        'If a system still needs access, create a new key for it.',
      );
    case 'key.report':
      return ofKey(
        `An API key of ${organization} was reported as leaked`,
        ['A member found this key where it must not be.', 'Revoke or rotate it now, and check what it read.'],
        'If the key was revoked already, there is nothing to do.',
      );
    case 'key.expiring':
      return {
        subject: choose(
          `An API key of ${organization} expires soon`,
          `${items.length} API keys of ${organization} expire soon`,
        ),
        sentences: [
          choose(
            'Rotate the key now, and put the new one into use.',
            'Rotate the keys now, and put the new ones into use.',
          ),
          'Requests with an expired key are rejected.',
        ],
        facts: [
          ['Organization', organization],
          ...items.map((key): [string, string] => [nameKey(key), `Expires ${format(key.at ?? createdAt)}`]),
        ],
        action: open('/keys', choose('View API key', 'View API keys')),
        advice: `If ${choose('the key is', 'they are')} no longer needed, there is nothing to do.`,
        reason: because(`you can manage the API keys of ${organization}`),
      };
    case 'webhook.failing':
      return ofWebhooks(
        choose(`A webhook of ${organization} is failing`, `${items.length} webhooks of ${organization} are failing`),
        [
          choose(
            'Its receiver has accepted no event for more than an hour.',
            'Their receivers have accepted no event for more than an hour.',
          ),
          choose(
            'Open the webhook to see the cause, and repair it within three days.',
            'Open the webhooks to see the causes, and repair them within three days.',
          ),
          'Until then each event is sent again, and none is lost.',
        ],
        'You get one email a day while this continues.',
      );
    case 'webhook.suspended':
      return ofWebhooks(
        `A webhook of ${organization} was suspended`,
        [
          'Nothing more is sent to the receiver: it accepted no event for days, or answered 410 Gone.',
          'Repair the receiver, then resume the webhook.',
          'New events are held until then.',
        ],
        'If the webhook is no longer needed, delete it.',
      );
    case 'webhook.resume':
      return ofWebhooks(
        `A webhook of ${organization} was resumed`,
        ['The suspended webhook was resumed.', 'Events that were held are being sent.'],
        'There is nothing to do.',
      );
    case 'audit_log.download':
      return ofOwner(
        `The audit log of ${organization} was downloaded`,
        ['Entries of the audit log were downloaded as a file.'],
        '/audit-log',
        'View audit log',
      );
    case 'audit_log.evidence':
      return ofOwner(
        `Evidence of ${organization} was exported`,
        ['The download of months of the audit log as an evidence package was started.'],
        '/audit-log',
        'View audit log',
      );
    case 'audit_log.anchor': {
      const { month = '1970-01', position = 0, hash = '' } = anchor ?? {};
      const name = formatMonth(month);
      return {
        subject: `End of the audit log of ${organization} for ${name}`,
        sentences: [
          'Keep this email: it shows later whether an entry of that month was changed, removed or added.',
          `To compare, download the evidence of ${name}, save this email as anchors.txt in its folder, and run ` +
            '“node verify.mjs . anchors.txt”.',
        ],
        facts: [
          ['Organization', organization],
          ['Entries', position.toLocaleString('en-US')],
          ['Month, position and hash of the last entry', `${month} ${position} ${hash}`],
        ],
        action: { label: 'Download evidence', url: within('/audit-log/evidence') },
        advice: 'If the program finds a difference, keep the email and the evidence, and contact support.',
        reason: because(
          `you are an owner of ${organization}, which has no security contact. Choose one in Settings to send it there`,
        ),
      };
    }
    case 'sso.set':
      return ofOwner(
        `The sign-in provider of ${organization} was set up or changed`,
        [
          'Its issuer, client ID or client secret was saved, and members can sign in with it.',
          'If it replaced another provider, the accounts and sessions of that one ended.',
          'If that one was required, passwords open the organization again.',
        ],
        '/sign-in',
        'View sign-in provider',
      );
    case 'sso.require':
      return ofOwner(
        `${organization} requires its sign-in provider`,
        ['Members need the provider to open the organization from now on.', 'Passwords no longer open it.'],
        '/sign-in',
        'View sign-in provider',
      );
    case 'sso.accept_passwords':
      return ofOwner(
        `${organization} accepts passwords again`,
        ['Members can open the organization with a password again, beside its sign-in provider.'],
        '/sign-in',
        'View sign-in provider',
      );
    case 'sso.remove':
      return ofOwner(
        `The sign-in provider of ${organization} was removed`,
        [
          'Linked accounts and the sessions that began there ended.',
          'Members sign in with a password.',
          'Those without a password need a recovery link from support.',
        ],
        '/sign-in',
        'View sign-in provider',
      );
    case 'owner.add':
      return ofOwner(
        `An owner was added to ${organization}`,
        ['A member is an owner now, with every permission.'],
        '/members',
        'View members',
      );
    case 'owner.remove':
      return ofOwner(
        `An owner of ${organization} was removed`,
        ['A member is no longer an owner: they were removed or suspended, or lost the role.'],
        '/members',
        'View members',
      );
    case 'security_contact.change': {
      const text = ofOwner(
        `The security contact of ${organization} was changed`,
        ['Copies of security emails go to the address that Settings names, or to none.'],
        '/settings',
        'View settings',
      );
      if (personId !== null) return text;
      return {
        ...text,
        advice: `If you did not expect this, tell an owner of ${organization}.`,
        reason: `You get this email because this address is or was the security contact of ${organization}.`,
      };
    }
  }
}
